import type { InputError } from '../base/errors.ts';
import type { Reason } from '../domain/reject.ts';
import type { Database, QueryFile } from './database.ts';

/** Refuses every record of some users, by every way in, in environments that use it (`uses.ts`). Others pay nothing. */
export interface RefusalSeam {
  /** The name of the capability. */
  readonly use: string;
  /** Why a record in a file is refused. */
  readonly reason: Reason;
  /** The same, for the caller of a single record. */
  error(): InputError;
  /** Returns SQL that is the id of a user, or fails by `constraint` if the user is refused. `id`, `environment`: columns. */
  guard(id: string, environment: string): string;
  readonly constraint: string;
  /** Returns the refused among the ids, a text[] that may be in binary. What a load sees may not change while it runs. */
  find(db: Database, environmentId: number, ids: readonly string[] | Buffer): Promise<ReadonlySet<string>>;
}

/** The environments and capabilities that a statement of single records is composed for. */
export interface Guard {
  readonly environments: readonly number[];
  /** Their known uses, `1 name` each. The statement fails by `isUnknownUse` if one of them uses more. */
  readonly uses: readonly string[];
  compose(query: QueryFile): QueryFile;
}

/** In a statement, the id of a user and its environment: `i.u /* guarded, of i.e *\/`. */
const guarded = /(\w+\.\w+) \/\* guarded, of (\w+\.\w+) \*\//g;

/** Guards the ids of users in a statement. It is prepared under a name of its own. */
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
