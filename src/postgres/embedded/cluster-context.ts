import type { Account } from './account.ts';
import type { Binaries } from './binaries.ts';
import type { Layout } from './layout.ts';

/** What every step on a data directory needs: where it lies, who runs what on it. */
export interface ClusterContext {
  readonly layout: Layout;
  readonly binaries: Binaries;
  /** The account that runs the server when we are root; undefined when it runs as ourselves. */
  readonly account: Account | undefined;
}
