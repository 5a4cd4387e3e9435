import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type uPlot from 'uplot';
import { formatShort } from '../lib/format.ts';

interface PlotProps {
  /** A description for those who do not see it. */
  readonly label: string;
  /** Seconds since 1970. */
  readonly times: readonly number[];
  readonly values: readonly number[];
  /** A colour of tokens.css, such as `--inserted`. */
  readonly ink: string;
  readonly height?: number;
}

/** Numbers over time, as an area. Its code is loaded when it is first shown; it follows the width and the theme. */
export function Plot({ label, times, values, ink, height = 120 }: PlotProps): VNode {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data = useRef<uPlot.AlignedData>([[], []]);
  data.current = [[...times], [...values]];
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    let isGone = false;
    const draw = async (): Promise<void> => {
      const { default: Plotter } = await import('uplot');
      if (isGone) return;
      plot.current?.destroy();
      plot.current = new Plotter(options(element, ink, height), data.current, element);
    };
    const resized = new ResizeObserver(() =>
      plot.current?.setSize({ width: Math.max(1, element.clientWidth), height }),
    );
    const redraw = (): void => void draw();
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const chosen = new MutationObserver(redraw);
    chosen.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    dark.addEventListener('change', redraw);
    resized.observe(element);
    redraw();
    return () => {
      isGone = true;
      resized.disconnect();
      chosen.disconnect();
      dark.removeEventListener('change', redraw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [ink, height]);
  useEffect(() => plot.current?.setData(data.current), [times, values]);
  return <div ref={box} class="plot" role="img" aria-label={label} style={{ blockSize: `${height}px` }} />;
}

/** The colour that a token has in the theme of this moment: canvas knows no tokens. */
function colourOf(element: HTMLElement, token: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${token})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function options(element: HTMLElement, ink: string, height: number): uPlot.Options {
  const [line, text, colour] = [
    colourOf(element, '--line'),
    colourOf(element, '--text-muted'),
    colourOf(element, ink),
  ];
  const font = `11px ${getComputedStyle(element).fontFamily}`;
  const axis = { stroke: text, font, grid: { stroke: line, width: 1 }, ticks: { show: false } };
  return {
    width: Math.max(1, element.clientWidth),
    height,
    legend: { show: false },
    cursor: { show: false },
    // At the right, half of the last time below the axis.
    padding: [8, 16, 0, 0],
    scales: { y: { range: (_plot, _least, most) => [0, Math.max(1, most) * 1.1] } },
    axes: [
      { ...axis, size: 24, space: 60, grid: { show: false }, values: (_plot, at) => at.map(clock) },
      { ...axis, size: 48, space: 28, values: (_plot, at) => at.map((value) => formatShort(value)) },
    ],
    series: [
      {},
      {
        stroke: colour,
        fill: colour.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.16)'),
        width: 1.5,
        points: { show: false },
      },
    ],
  };
}

const time = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });

function clock(seconds: number): string {
  return time.format(seconds * 1_000);
}
