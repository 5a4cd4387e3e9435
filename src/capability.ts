import type { JobSeam, Tend } from './background-jobs/seam.ts';
import type { AddCommand } from './cli/settings.ts';
import type { TaggedRoutes } from './http/seam.ts';
import type { WorkSeam } from './tasks/seam.ts';

/**
 * What sluice can do beyond its core: one folder below `capabilities/`, and one line in `registry.ts`. Without that line the core
 * builds, starts and passes its own tests. What is not needed by every process is loaded when it is.
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
