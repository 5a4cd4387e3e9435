import type { Environment } from './environment.ts';
import type { Terminal } from './terminal.ts';

/** What every command works with; made once, by `main.ts`. */
export interface Cli {
  readonly environment: Environment;
  readonly terminal: Terminal;
  /** The script to run for another process of ours. */
  readonly entry: string;
}
