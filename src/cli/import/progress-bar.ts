import cliProgress from 'cli-progress';
import type { Load } from '../../domain/load.ts';
import { formatBytes, formatCount, formatDuration } from '../format-numbers.ts';
import { type Progress, rowsPerSecond } from './progress.ts';

const longestName = 28;

/** One line that moves, on standard error: it goes when the file is done, and the summary takes its place. */
export function barProgress(name: string): Progress {
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
  const show = (done: number, total: number, text: string): void => {
    const percent = total > 0 ? `${Math.floor((100 * Math.min(done, total)) / total)}%`.padStart(4) : '    ';
    const values = { name: short, percent, text };
    if (!running) bar.start(Math.max(total, 1), done, values);
    running = true;
    bar.setTotal(Math.max(total, 1));
    bar.update(Math.min(done, Math.max(total, 1)), values);
  };
  return {
    receiving: (bytes, total) => {
      const of = total === null ? '' : ` of ${formatBytes(total)}`;
      show(total === null ? 0 : bytes, total ?? 0, `receiving ${formatBytes(bytes)}${of}`);
    },
    loading: (load) => show(load.tally.read, load.totalRows, describe(load, Date.now())),
    end: () => {
      if (running) bar.stop();
      running = false;
    },
  };
}

function describe(load: Load, now: number): string {
  if (load.status === 'queued' && (load.queuePosition ?? 0) > 0)
    return `waits for ${load.queuePosition} loads before it`;
  const { read, rejected } = load.tally;
  const parts = [`${formatCount(read)}/${formatCount(load.totalRows)} rows`];
  const rate = rowsPerSecond(load, now);
  if (rate !== null) parts.push(`${formatCount(rate)} rows/s`);
  if (rejected > 0) parts.push(`${formatCount(rejected)} rejected`);
  if (rate !== null && read < load.totalRows)
    parts.push(`${formatDuration((load.totalRows - read) / rate)} left`);
  if (read === load.totalRows) parts.push('finishing');
  return parts.join(' · ');
}
