import type { VNode } from 'preact';
import { formatCount, formatShort } from '../lib/format.ts';

/* Icons on a grid of 16 units, in the colour of the text. `iconOnly` hides their labels. */

const paths = {
  pulse: 'M1.5 8.5h3l2-5 3 9 2-4h3',
  jobs: 'M2.5 4h11M2.5 8h11M2.5 12h7',
  load: 'M8 10V2.5M5 5.5l3-3 3 3M2.5 10.5v3h11v-3',
  export: 'M8 2.5V10M5 7l3 3 3-3M2.5 10.5v3h11v-3',
  people: 'M8 8a2.75 2.75 0 1 0 0-5.5A2.75 2.75 0 0 0 8 8ZM2.5 13.5c.6-2.3 2.7-3.5 5.5-3.5s4.9 1.2 5.5 3.5',
  companies: 'M3 13.5v-11h6.5v11M9.5 6.5H13v7M1.5 13.5h13M5.3 5.5h1.9M5.3 8h1.9M5.3 10.5h1.9',
  segments: 'M8 2v6l4.5 4M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12Z',
  clock: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 4.8V8l2.2 1.6',
  tray: 'M2.5 9 4.3 3h7.4l1.8 6v4h-11V9h3.2l1 1.6h2.6l1-1.6h3.2',
  access:
    'M10.2 9.3a3.5 3.5 0 1 0-3.5-3.5c0 .4.1.8.2 1.2L2.5 11.4v2.1h2.6v-1.7h1.7V10.1l.9-.9c.7.1 1.6.1 2.5.1ZM11 5.3h.01',
  check: 'm3.5 8.5 3 3 6-7',
  cross: 'm4 4 8 8M12 4l-8 8',
  slash: 'M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM4.2 11.8l7.6-7.6',
  circle: 'M8 13a5 5 0 1 0 0-10 5 5 0 0 0 0 10Z',
  half: 'M8 13a5 5 0 1 0 0-10M8 3v10',
  warning: 'M8 2.5 14.5 13.5h-13L8 2.5ZM8 6.5v3.2M8 11.7h.01',
  copy: 'M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z',
  next: 'm6 3.5 4.5 4.5L6 12.5',
  back: 'M10 3.5 5.5 8l4.5 4.5',
  down: 'm3.5 6 4.5 4.5L12.5 6',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  close: 'm4 4 8 8M12 4l-8 8',
  keyboard: 'M1.5 4h13v8h-13zM4 6.7h.01M6.7 6.7h.01M9.3 6.7h.01M12 6.7h.01M4.5 9.5h7',
  leave: 'M6.5 2.5h-4v11h4M6 8h7.5M10.5 5l3 3-3 3',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }): VNode {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}

export function iconOnly(name: IconName, title: string): VNode {
  return (
    <span title={title}>
      <Icon name={name} size={14} />
      <span class="visually-hidden">{title}</span>
    </span>
  );
}

export function Mark(): VNode {
  return (
    <svg class="mark" viewBox="0 0 32 32" width="20" height="20" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path d="M6 10.5h20M6 16h13M6 21.5h7" />
      <circle cx="24" cy="21" r="3" />
    </svg>
  );
}

interface Bar {
  readonly title: string;
  /** Values of the parts, from the bottom to the top. */
  readonly values: readonly number[];
}

interface BarsProps {
  /**
   * Period of the bars, such as `in 30 days`. Screen readers read it after the sums of the parts.
   */
  readonly label: string;
  readonly bars: readonly Bar[];
  /** Colours are variables of tokens.css, such as `--inserted`. */
  readonly parts: readonly (readonly [name: string, ink: string])[];
  /** Label of the maximum value. */
  readonly top?: string;
  readonly axis: readonly (string | undefined)[];
}

const height = 64;
const step = 10;
const gap = 2;

export function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

/** A text with a bar below it. The bar is filled to `part / whole`. */
export function barOf(part: number, whole: number, words: string): VNode {
  return (
    <span class="filled">
      {words}
      <progress max={Math.max(1, whole)} value={part} aria-hidden="true" />
    </span>
  );
}

/**
 * Bars for numbers over time, with the newest at the right. Even a very small number above 0 is
 * visible.
 */
export function Bars({ label, bars, parts, top, axis }: BarsProps): VNode {
  const most = Math.max(...bars.map(({ values }) => sumOf(values))) || 1;
  const sums = parts.map(([name], part) => ({
    name,
    sum: sumOf(bars.map(({ values }) => values[part] ?? 0)),
  }));
  const summary = sums.map(({ name, sum }) => `${formatCount(sum)} ${name}`).join(', ');
  return (
    <figure class="stack bars">
      {parts.length === 1 ? null : (
        <p class="row num">
          {parts.map(([name, ink], part) => (
            <span key={name} class={sums[part]?.sum === 0 ? 'faint' : undefined}>
              <span class="swatch" style={{ background: `var(${ink})` }} />
              <strong>{formatShort(sums[part]?.sum ?? 0)}</strong> {name}
            </span>
          ))}
          {top === undefined ? null : <span class="faint push">up to {top}</span>}
        </p>
      )}
      <svg
        viewBox={`0 0 ${bars.length * step} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${summary} ${label}`}
      >
        {bars.map(({ title, values }, at) => (
          <g key={at}>
            <title>{title}</title>
            <rect
              style={{ fill: 'var(--line)' }}
              x={at * step + 1}
              y={height - 1}
              width={step - gap}
              height={1}
            />
            {stack(values, (height - parts.length * gap) / most).map(([y, tall], part) => (
              <rect
                key={part}
                style={{ fill: `var(${parts[part]?.[1]})` }}
                x={at * step + 1}
                y={height - y - tall}
                width={step - gap}
                height={tall}
              />
            ))}
          </g>
        ))}
      </svg>
      <figcaption class="row spread hint num">
        {axis.map((text, at) => (
          <span key={at}>{text}</span>
        ))}
      </figcaption>
    </figure>
  );
}

function stack(values: readonly number[], scale: number): readonly (readonly [y: number, tall: number])[] {
  let y = 0;
  return values.map((value) => {
    const tall = value === 0 ? 0 : Math.max(gap, value * scale);
    y += tall;
    return [y - tall, tall];
  });
}
