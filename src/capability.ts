import type { JobSeam, Tend } from './background-jobs/seam.ts';
import type { AddCommand } from './cli/settings.ts';
import type { TaggedRoutes } from './http/seam.ts';
import type { WorkSeam } from './tasks/seam.ts';

/**
 * A part of sluice beyond its core: one folder below `capabilities/`, and one line in `registry.ts`. The core builds and starts
 * without that line. Modules that only some processes need are imported on demand.
 */
export interface Capability {
  /** The name of the folder. */
  readonly name: string;
  /** Other capabilities that it calls. */
  readonly needs?: readonly string[];
  readonly jobs?: JobSeam;
  readonly tend?: Tend;
  readonly work?: () => Promise<WorkSeam>;
  readonly routes?: () => Promise<TaggedRoutes>;
  /** By the word after `sluice`. */
  readonly commands?: Readonly<Record<string, () => Promise<AddCommand>>>;
}
