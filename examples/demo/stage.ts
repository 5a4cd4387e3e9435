import type { Cli } from '../../src/cli/settings.ts';
import type { Service } from '../../src/processes/service.ts';

export interface DemoFlags {
  readonly users: number;
  readonly companies: number;
  readonly events: number;
}

/** The parts that every step of the demo uses. */
export interface DemoStage {
  readonly cli: Cli;
  readonly service: Service;
  readonly folder: string;
  readonly key: string;
  readonly flags: DemoFlags;
  readonly signal: AbortSignal;
  /**
   * True if a person is watching: progress bars move. Otherwise, each step prints one line at its
   * end.
   */
  readonly isWatched: boolean;
  readonly heading: (text: string) => string;
}
