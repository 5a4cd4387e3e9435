import type { Environment } from './environment.ts';
import type { Terminal } from './terminal.ts';

/** What every command works with; made once, by `main.ts`. */
export interface Cli {
  readonly environment: Environment;
  /** The variables of `environment` that the file .env gave. */
  readonly fromDotEnv: ReadonlySet<string>;
  readonly terminal: Terminal;
  /** The script to run for another process of ours. */
  readonly entry: string;
}
