import type { Cli } from '../../src/cli/settings.ts';
import type { Service } from '../../src/processes/service.ts';

export interface DemoFlags {
  readonly users: number;
  readonly companies: number;
  readonly events: number;
}

/** The tools that every step of the demo works with. */
export interface DemoStage {
  readonly cli: Cli;
  readonly service: Service;
  readonly folder: string;
  readonly key: string;
  readonly flags: DemoFlags;
  readonly signal: AbortSignal;
  /** A person watches: bars move. Otherwise a step says one thing, when it is finished. */
  readonly isWatched: boolean;
  readonly heading: (text: string) => string;
}
