import type { InputError } from '../base/errors.ts';
import type { Reason } from '../domain/reject.ts';
import type { Database, QueryFile } from './database.ts';

/**
 * Lets a capability refuse all records of certain users. Environments that do not use it
 * (`uses.ts`) do not check, so they have no extra cost.
 */
export interface RefusalSeam {
  readonly use: string;
  /** For a file's rejects. */
  readonly reason: Reason;
  /** For a single record. */
  error(): InputError;
  /**
   * Returns an SQL expression with the value of `id`, which violates `constraint` if that user is
   * refused. `id` and `environment` are SQL expressions.
   */
  guard(id: string, environment: string): string;
  readonly constraint: string;
  /**
   * Returns the refused ids. `ids` may be a text[] in binary form. The result does not change while
   * a load runs.
   */
  find(db: Database, environmentId: number, ids: readonly string[] | Buffer): Promise<ReadonlySet<string>>;
}

/**
 * A statement for single records, its environments, and capabilities that refuse some of their
 * users.
 */
export interface Guard {
  readonly environments: readonly number[];
  /**
   * Environment id and capability that it uses, such as `1 name`. An unlisted use fails the
   * statement (`isUnknownUse`).
   */
  readonly uses: readonly string[];
  compose(query: QueryFile): QueryFile;
}

/**
 * A comment in a statement marks each user id to check and its environment's column: `i.u /*
 * guarded, of i.e *\/`.
 */
const guarded = /(\w+\.\w+) \/\* guarded, of (\w+\.\w+) \*\//g;

/** The new statement has its own name, because it is prepared separately. */
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
