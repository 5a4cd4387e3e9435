import type { InputError } from '../base/errors.ts';
import type { Reason } from '../domain/reject.ts';
import type { Database, QueryFile } from './database.ts';

/** Refuses all records of some users in environments that use it (`uses.ts`), free for others. */
export interface RefusalSeam {
  readonly use: string;
  /** Reason in a file's rejects. */
  readonly reason: Reason;
  /** Error of a single record. */
  error(): InputError;
  /** Returns SQL for a user id that fails by `constraint` if refused. The arguments are columns. */
  guard(id: string, environment: string): string;
  readonly constraint: string;
  /** Returns the refused ids of a text[], perhaps binary. The answer is fixed while a load runs. */
  find(db: Database, environmentId: number, ids: readonly string[] | Buffer): Promise<ReadonlySet<string>>;
}

/** What a statement of single records is composed for. */
export interface Guard {
  readonly environments: readonly number[];
  /** Known uses, each `1 name`. The statement fails by `isUnknownUse` if there are more. */
  readonly uses: readonly string[];
  compose(query: QueryFile): QueryFile;
}

/** In a statement, the id of a user and its environment: `i.u /* guarded, of i.e *\/`. */
const guarded = /(\w+\.\w+) \/\* guarded, of (\w+\.\w+) \*\//g;

/** Guards the ids of users. The statement is prepared under its own name. */
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
