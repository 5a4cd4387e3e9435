import type { SignInWay } from './access/seam.ts';
import type { SandboxTasks } from './base/sandbox/sandbox.ts';
import type { DeclaredSection } from './cli/seam.ts';
import type { AddCommand } from './cli/settings.ts';
import type { DeletionSeam } from './deletion/seam.ts';
import type { OptionTable } from './domain/option-table.ts';
import type { ExportOptions } from './export/options.ts';
import type { ExportSeam } from './export/seam.ts';
import type { TaggedRoutes } from './http/route.ts';
import type { CallSeam } from './ingest/seam.ts';
import type { ArchiveSeam, WorkSeam } from './jobs/seam.ts';
import type { RewriteSeam } from './load/receive/received-file.ts';
import type { LoadSeam, RecordSeam, SecretSeam } from './load/seam.ts';
import type { DefinitionList } from './lookups/seam.ts';
import type { ActSeam } from './postgres/acts.ts';
import type { RefusalSeam } from './postgres/uses.ts';
import type { JobSeam, Maintenance } from './tasks/job-seam.ts';
import type { FigureSeam, Preflight } from './telemetry/seam.ts';

/**
 * A part of sluice beyond its core: one folder below `capabilities/`, and one line in
 * `registry.ts`. The core builds and starts without that line. Modules that only some processes
 * need are imported on demand.
 */
export interface Capability {
  readonly name: string;
  /** Names of the capabilities whose functions this capability uses. */
  readonly needs?: readonly string[];
  readonly refusals?: RefusalSeam;
  readonly records?: RecordSeam;
  readonly secrets?: SecretSeam;
  readonly loads?: LoadSeam;
  readonly signIn?: SignInWay;
  /** The list that this capability adds to the definitions file. */
  readonly definitions?: () => Promise<DefinitionList>;
  /** At most one capability may have `rewriter`, and at most one may have `calls`. */
  readonly rewriter?: RewriteSeam;
  readonly calls?: () => Promise<CallSeam>;
  readonly exports?: ExportSeam;
  readonly deletions?: DeletionSeam;
  /** At most one capability has an archive. */
  readonly archive?: ArchiveSeam;
  readonly jobs?: JobSeam;
  readonly maintain?: Maintenance;
  readonly acts?: ActSeam;
  readonly figures?: () => Promise<FigureSeam>;
  readonly work?: () => Promise<WorkSeam>;
  /** Tasks that parse untrusted bytes. They run in a sandbox. */
  readonly sandboxTasks?: (rewriter: RewriteSeam | null) => Promise<SandboxTasks>;
  readonly preflight?: Preflight;
  /** `loads` and `exports` are the options that requests for loads and for exports accept. */
  readonly routes?: (loads: OptionTable, exports: ExportOptions) => Promise<TaggedRoutes>;
  /** The section that this capability adds to a file that declares an environment. */
  readonly declares?: () => Promise<DeclaredSection>;
  /**
   * Commands by the word after `sluice`. If the core has a command with that word, a subcommand is
   * added to it.
   */
  readonly commands?: Readonly<Record<string, () => Promise<AddCommand>>>;
}
