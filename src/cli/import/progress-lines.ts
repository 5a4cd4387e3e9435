import type { Load } from '../../domain/load.ts';
import { formatBytes, formatCount } from '../format-numbers.ts';
import type { Terminal } from '../terminal.ts';
import type { Progress } from './progress.ts';

const everyMs = 3_000;

/** For a log: a line every few seconds, none for what is done sooner. */
export function lineProgress(terminal: Terminal, name: string): Progress {
  let saidAt = performance.now();
  const say = (text: () => string): void => {
    if (performance.now() - saidAt < everyMs) return;
    saidAt = performance.now();
    terminal.note(text());
  };
  return {
    receiving: (bytes, total) =>
      say(
        () => `${name}: ${formatBytes(bytes)}${total === null ? '' : ` of ${formatBytes(total)}`} received`,
      ),
    loading: (load) => say(() => describe(name, load)),
    end: () => undefined,
  };
}

function describe(name: string, load: Load): string {
  if (load.status === 'queued') return `${name}: waits for ${load.queuePosition ?? 0} loads before it`;
  const { read, rejected } = load.tally;
  return `${name}: ${formatCount(read)} of ${formatCount(load.totalRows)} rows, ${formatCount(rejected)} rejected`;
}
