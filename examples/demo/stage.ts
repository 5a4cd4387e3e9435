import cliProgress from 'cli-progress';
import type { Cli } from '../../src/cli/define-command.ts';
import type { Service } from '../../src/cli/service/start-service.ts';
import type { Terminal } from '../../src/cli/terminal.ts';

export interface DemoFlags {
  readonly users: number;
  readonly companies: number;
  readonly events: number;
}

/** What every step of the demo works with. */
export interface DemoStage {
  readonly cli: Cli;
  readonly service: Service;
  readonly folder: string;
  readonly key: string;
  readonly flags: DemoFlags;
  readonly signal: AbortSignal;
  readonly heading: (text: string) => string;
}

/** A step of the demo that takes a moment. */
export interface Meter {
  show(done: number, total: number, text: string): void;
  /** Leaves the line free again. */
  end(): void;
}

const everyMs = 1_000;

/** A moving bar for a person, now and then a line for everybody else. */
export function createMeter(terminal: Terminal, name: string): Meter {
  if (!terminal.live) {
    let saidAt = performance.now();
    return {
      show(done, total, text) {
        if (performance.now() - saidAt < everyMs) return;
        saidAt = performance.now();
        terminal.note(`   ${name} ${Math.floor((100 * done) / Math.max(total, 1))}%  ${text}`);
      },
      end: () => undefined,
    };
  }
  const bar = new cliProgress.SingleBar(
    {
      format: `   ${name} {bar} {percentage}%  {text}`,
      barsize: 28,
      hideCursor: true,
      clearOnComplete: true,
    },
    cliProgress.Presets.shades_classic,
  );
  bar.start(1, 0, { text: '' });
  return {
    show(done, total, text) {
      bar.setTotal(Math.max(total, 1));
      bar.update(done, { text });
    },
    end: () => bar.stop(),
  };
}
