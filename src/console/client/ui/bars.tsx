import type { VNode } from 'preact';

interface Bar {
  /** Names the bar, on hover. */
  readonly title: string;
  readonly value: number;
}

interface BarsProps {
  /** A description for those who do not see it. */
  readonly label: string;
  readonly bars: readonly Bar[];
  /** A colour of tokens.css, such as `--inserted`. */
  readonly ink: string;
  /** Words below the axis, from left to right. */
  readonly axis: readonly (string | undefined)[];
}

const height = 64;
const step = 10;

/** Draws numbers over time, a bar each, the newest at the right. */
export function Bars({ label, bars, ink, axis }: BarsProps): VNode {
  const most = Math.max(...bars.map(({ value }) => value)) || 1;
  return (
    <figure class="bars">
      <svg
        viewBox={`0 0 ${bars.length * step} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={label}
      >
        {bars.map(({ title, value }, at) => {
          const tall = value === 0 ? 1 : Math.max(3, (value / most) * height);
          const color = value === 0 ? 'var(--line)' : `var(${ink})`;
          return (
            <rect
              key={title}
              style={{ fill: color }}
              x={at * step + 1}
              y={height - tall}
              width={step - 2}
              height={tall}
            >
              <title>{title}</title>
            </rect>
          );
        })}
      </svg>
      <figcaption class="faint num">
        {axis.map((text, at) => (
          <span key={at}>{text}</span>
        ))}
      </figcaption>
    </figure>
  );
}
