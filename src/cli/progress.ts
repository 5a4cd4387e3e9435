import cliProgress from 'cli-progress';
import type { Export } from '../domain/export.ts';
import type { Load } from '../domain/load.ts';
import { formatBytes, formatCount, formatDuration, plural } from '../domain/wording.ts';
import { rowsPerSecond } from '../load/render-load.ts';
import type { Terminal } from './terminal.ts';

/** How far a load or an export is. */
export interface Progress {
  /** `share` is from 0 to 1, null where the whole is not known. */
  show(share: number | null, text: () => string): void;
  /** Leaves the line to whoever writes next. */
  end(): void;
}

const longestName = 28;
const lineEveryMs = 3_000;
const silent: Progress = { show: () => undefined, end: () => undefined };

/** A moving bar for a person, a line every few seconds for a log, nothing if so wished. */
export function createProgress(terminal: Terminal, name: string, quiet: boolean): Progress {
  if (quiet) return silent;
  return terminal.live ? movingBar(name) : lines(terminal, name);
}

/** One line on standard error: it goes when all is done, and the summary takes its place. */
function movingBar(name: string): Progress {
  const bar = new cliProgress.SingleBar({
    format: '{name} {bar} {percent} {text}',
    barCompleteChar: '█',
    barIncompleteChar: '░',
    barsize: 24,
    hideCursor: true,
    clearOnComplete: true,
    stream: process.stderr,
    fps: 10,
  });
  const short = name.length > longestName ? `${name.slice(0, longestName - 1)}…` : name;
  let running = false;
  return {
    show(share, text) {
      const percent = share === null ? '    ' : `${Math.floor(100 * share)}%`.padStart(4);
      const values = { name: short, percent, text: text() };
      if (running) bar.update(share ?? 0, values);
      else bar.start(1, share ?? 0, values);
      running = true;
    },
    end() {
      if (running) bar.stop();
      running = false;
    },
  };
}

/** None for what is done sooner. */
function lines(terminal: Terminal, name: string): Progress {
  let shownAt = performance.now();
  return {
    show(share, text) {
      if (performance.now() - shownAt < lineEveryMs) return;
      shownAt = performance.now();
      terminal.inform(`${name}: ${share === null ? '' : `${Math.floor(100 * share)}% · `}${text()}`);
    },
    end: () => undefined,
  };
}

/** `total` is null where the length is not known. */
export function showReceiving(progress: Progress, bytes: number, total: number | null): void {
  const share = total === null ? null : Math.min(1, bytes / Math.max(total, 1));
  const of = total === null ? '' : ` of ${formatBytes(total)}`;
  progress.show(share, () => `receiving ${formatBytes(bytes)}${of}`);
}

export function showLoad(progress: Progress, load: Load): void {
  const share = load.totalRows > 0 ? Math.min(1, load.tally.read / load.totalRows) : null;
  progress.show(share, () => describeLoad(load, new Date()));
}

function describeLoad(load: Load, now: Date): string {
  if (load.status === 'queued' && (load.queuePosition ?? 0) > 0)
    return `waits for ${plural(load.queuePosition ?? 0, 'load')} before it`;
  const { read, rejected } = load.tally;
  const parts = [`${formatCount(read)}/${plural(load.totalRows, 'row')}`];
  const rate = rowsPerSecond(load, now) ?? 0;
  if (rate > 0) parts.push(`${formatCount(rate)} rows/s`);
  if (rejected > 0) parts.push(`${formatCount(rejected)} rejected`);
  if (rate > 0 && read < load.totalRows) parts.push(`${formatDuration((load.totalRows - read) / rate)} left`);
  if (read === load.totalRows) parts.push('finishing');
  return parts.join(' · ');
}

export function showExport(
  progress: Progress,
  { status, progress: share, rowsWritten, bytesWritten }: Export,
) {
  progress.show(share, () =>
    status === 'queued'
      ? 'waits for a worker'
      : `${plural(rowsWritten, 'row')} · ${formatBytes(bytesWritten)}`,
  );
}
