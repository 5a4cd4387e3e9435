import type pg from 'pg';
import { describeNeeds, type Need } from '../domain/need.ts';
import { readNeeds } from '../postgres/stores/needs.ts';
import { readFileInForce } from '../sources/schedules/inspect-schedules.ts';

/** What an environment needs a person for. */
export interface EnvironmentNeed {
  readonly environment: string;
  /** First what does not work. */
  readonly needs: readonly Need[];
}

/** Where and what is looked for. */
interface Search {
  /** Null: all environments. */
  readonly environmentId: number | null;
  /** SCHEDULES_FILE: schedules that it no longer has, or disables, need nobody. Null: every schedule that ever ran counts. */
  readonly schedulesFile: string | null;
  /** From counts that are exact, where there are some. */
  readonly known?: { readonly unaccounted: number; readonly failedJobs: number };
}

/** What needs a person, for each environment by name. Costs what failed, not what is kept. */
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

/** Null where that is not known. */
async function namesInForce(path: string | null, environment: string): Promise<ReadonlySet<string> | null> {
  if (path === null) return null;
  const { schedules, problems } = await readFileInForce(path, environment);
  if (problems.length > 0) return null;
  return new Set(schedules.filter(({ enabled }) => enabled).map(({ name }) => name));
}
