import type pg from 'pg';
import { describeNeeds, type Need } from '../domain/need.ts';
import { readNeeds } from '../postgres/stores/health.ts';
import { readFileInForce } from '../sources/schedules/inspect-schedules.ts';

export interface EnvironmentNeed {
  readonly environment: string;
  /** Failures come first. */
  readonly needs: readonly Need[];
}

interface Search {
  /** `null` stands for all environments. */
  readonly environmentId: number | null;
  /** SCHEDULES_FILE: schedules that it no longer has, or disables, are left out. With `null` every schedule that ever ran counts. */
  readonly schedulesFile: string | null;
  readonly known?: { readonly unaccounted: number; readonly failedJobs: number };
}

/** Returns what needs attention, by environment. Its cost grows with what failed, not with what is kept. */
export async function findNeeds(
  pool: pg.Pool,
  { environmentId, schedulesFile, known }: Search,
): Promise<EnvironmentNeed[]> {
  const found = await readNeeds(pool, environmentId);
  return Promise.all(
    found.map(async ({ environment, counts, failing }) => {
      const names = failing.length === 0 ? null : await namesInForce(schedulesFile, environment);
      return {
        environment,
        needs: describeNeeds(
          { ...counts, failedJobs: known?.failedJobs ?? counts.failedJobs },
          names === null ? failing : failing.filter(({ name }) => names.has(name)),
          { unaccounted: known?.unaccounted ?? 0 },
        ),
      };
    }),
  );
}

/** Returns the names of the enabled schedules; `null` if they are not known. */
async function namesInForce(path: string | null, environment: string): Promise<ReadonlySet<string> | null> {
  if (path === null) return null;
  const { schedules, problems } = await readFileInForce(path, environment);
  if (problems.length > 0) return null;
  return new Set(schedules.filter(({ enabled }) => enabled).map(({ name }) => name));
}
