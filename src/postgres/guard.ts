import type { InputError } from '../base/errors.ts';
import type { Reason } from '../domain/reject.ts';
import type { Database, QueryFile } from './database.ts';

/**
 * Refuses all records of certain users in environments that use this seam (`uses.ts`). Other
 * environments pay no cost.
 */
export interface RefusalSeam {
  readonly use: string;
  /** Reason shown in a file's rejects. */
  readonly reason: Reason;
  /** Returns the error for a single record. */
  error(): InputError;
  /**
   * Returns SQL that checks a user id and violates `constraint` if the user is refused. Both
   * arguments are columns.
   */
  guard(id: string, environment: string): string;
  readonly constraint: string;
  /**
   * Returns the ids that are refused. `ids` may be a text[] in binary form. The result does not
   * change while a load runs.
   */
  find(db: Database, environmentId: number, ids: readonly string[] | Buffer): Promise<ReadonlySet<string>>;
}

/** Environments, and the uses that statements of single records take into account. */
export interface Guard {
  readonly environments: readonly number[];
  /**
   * Known uses, each as `1 name`, where 1 is the environment's id. If an environment has other
   * uses, the statement fails with `isUnknownUse`.
   */
  readonly uses: readonly string[];
  compose(query: QueryFile): QueryFile;
}

/**
 * Matches a user id and the environment of that user in a statement: `i.u /* guarded, of i.e *\/`.
 */
const guarded = /(\w+\.\w+) \/\* guarded, of (\w+\.\w+) \*\//g;

/** Adds guards to the user ids in a statement. The result is prepared under a different name. */
export function composeGuards(
  { name, text }: QueryFile,
  uses: readonly string[],
  refusals: readonly RefusalSeam[],
): QueryFile {
  const seams = refusals.filter(({ use }) => uses.includes(use));
  if (seams.length === 0) return { name, text };
  const withGuards = text.replace(guarded, (_, id: string, environment: string) =>
    seams.reduce((inner, seam) => seam.guard(inner, environment), id),
  );
  return { name: [name, ...uses].join('+'), text: withGuards };
}
