import cliProgress from 'cli-progress';
import type { Export } from '../../domain/export.ts';
import { formatBytes, formatCount } from '../format-numbers.ts';
import type { Terminal } from '../terminal.ts';

export interface ExportProgress {
  show(seen: Export): void;
  /** Leaves the line to whoever writes next. */
  end(): void;
}

const lineEveryMs = 3_000;

/** A moving bar for a person, a line every few seconds for a log, nothing if so wished. */
export function createExportProgress(terminal: Terminal, quiet: boolean): ExportProgress {
  if (quiet) return { show: () => undefined, end: () => undefined };
  return terminal.live ? bar() : lines(terminal);
}

function bar(): ExportProgress {
  const moving = new cliProgress.SingleBar({
    format: 'export {bar} {percentage}% {text}',
    barCompleteChar: '█',
    barIncompleteChar: '░',
    barsize: 24,
    hideCursor: true,
    clearOnComplete: true,
    stream: process.stderr,
    fps: 10,
  });
  let running = false;
  return {
    show(seen) {
      if (!running) moving.start(100, 0, { text: '' });
      running = true;
      moving.update(Math.floor(seen.progress * 100), { text: describe(seen) });
    },
    end() {
      if (running) moving.stop();
      running = false;
    },
  };
}

function lines(terminal: Terminal): ExportProgress {
  let saidAt = performance.now();
  return {
    show(seen) {
      if (performance.now() - saidAt < lineEveryMs) return;
      saidAt = performance.now();
      terminal.note(`export: ${describe(seen)}`);
    },
    end: () => undefined,
  };
}

function describe({ status, rowsWritten, bytesWritten }: Export): string {
  if (status === 'queued') return 'waits for a worker';
  return `${formatCount(rowsWritten)} rows · ${formatBytes(bytesWritten)}`;
}
