import type { InputError } from '../base/errors.ts';
import type { Reason } from '../domain/reject.ts';
import type { Database, QueryFile } from './database.ts';

/**
 * Seam for a capability that refuses all records of certain users. Only environments that use the
 * capability check for such users (`uses.ts`), so other environments have no extra cost.
 */
export interface RefusalSeam {
  readonly use: string;
  /** Reason shown in a file's rejects. */
  readonly reason: Reason;
  /** Returns the error with which a single record is refused. */
  error(): InputError;
  /**
   * Returns an SQL expression that has the value of `id`. If the user with this id is refused, the
   * expression violates `constraint`. `id` and `environment` are SQL expressions.
   */
  guard(id: string, environment: string): string;
  readonly constraint: string;
  /**
   * Returns the ids that are refused. `ids` can be a text[] in binary form. The result does not
   * change while a load runs.
   */
  find(db: Database, environmentId: number, ids: readonly string[] | Buffer): Promise<ReadonlySet<string>>;
}

/**
 * Describes a statement for single records: its environments, and the capabilities that refuse some
 * of their users.
 */
export interface Guard {
  readonly environments: readonly number[];
  /**
   * Each item is the id of an environment and the name of a capability that it uses, such as `1
   * name`. If an environment uses a capability that is not listed, the statement fails with an
   * error for which `isUnknownUse` returns true.
   */
  readonly uses: readonly string[];
  compose(query: QueryFile): QueryFile;
}

/**
 * In the text of a statement, a comment marks each user id to check and names the column of its
 * environment: `i.u /* guarded, of i.e *\/`.
 */
const guarded = /(\w+\.\w+) \/\* guarded, of (\w+\.\w+) \*\//g;

/**
 * Replaces each marked user id in a statement with the expressions of `refusals`. The new statement
 * has another name, because it is prepared separately.
 */
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
