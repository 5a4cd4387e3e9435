import type { InputError } from '../base/errors.ts';
import type { Reason } from '../domain/reject.ts';
import type { Database, QueryFile } from './database.ts';

/**
 * Refuses all records of some users in environments that use it (`uses.ts`). Costs others nothing.
 */
export interface RefusalSeam {
  readonly use: string;
  /** Reason in a file's rejects. */
  readonly reason: Reason;
  /** Error of a single record. */
  error(): InputError;
  /**
   * Returns SQL for a user id, which fails by `constraint` if the user is refused. The arguments
   * are columns.
   */
  guard(id: string, environment: string): string;
  readonly constraint: string;
  /** Returns the refused ids of a text[], perhaps binary. The result is fixed while a load runs. */
  find(db: Database, environmentId: number, ids: readonly string[] | Buffer): Promise<ReadonlySet<string>>;
}

/** Environments and uses for which statements of single records are composed. */
export interface Guard {
  readonly environments: readonly number[];
  /** Known uses, each `1 name`. The statement fails by `isUnknownUse` if there are more. */
  readonly uses: readonly string[];
  compose(query: QueryFile): QueryFile;
}

/** Id of a user and its environment in a statement: `i.u /* guarded, of i.e *\/`. */
const guarded = /(\w+\.\w+) \/\* guarded, of (\w+\.\w+) \*\//g;

/** Adds guards to the ids of users. The statement is prepared under its own name. */
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
