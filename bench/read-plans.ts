import { type CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import pLimit from 'p-limit';
import pg from 'pg';
import type { Reader } from '../src/postgres/pool.ts';
import type { DB } from '../src/postgres/schema.ts';

interface Statement {
  readonly name?: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/** What a reader asks PostgreSQL, to be explained: the statements themselves, not copies of them. */
export class Plans {
  readonly reader: Reader;
  readonly #pool: pg.Pool;
  readonly #asked: Statement[] = [];
  #explained = 0;

  constructor(url: string) {
    this.#pool = new pg.Pool({
      connectionString: url,
      max: 1,
      options: '-c search_path=sluice,pg_catalog -c timezone=UTC',
      types: { getTypeParser: readTypes },
    });
    const log = (query: CompiledQuery): void =>
      void this.#asked.push({ text: query.sql, values: query.parameters });
    const db = new Kysely<DB>({
      dialect: new PostgresDialect({ pool: this.#pool }),
      log: ({ query }) => log(query),
    });
    const query = (statement: Statement) => {
      this.#asked.push(statement);
      return this.#pool.query({ ...statement, values: [...statement.values] });
    };
    this.reader = { db, pool: { query } as unknown as pg.Pool, inTurn: pLimit(1) };
  }

  /** `explain (analyze, buffers)` of what `work` asks, each statement once; prepared ones as they run from the sixth time on. */
  async explain(work: (reader: Reader) => Promise<unknown>): Promise<readonly string[]> {
    this.#asked.length = 0;
    await work(this.reader);
    const plans: string[] = [];
    const met = new Set<string>();
    for (const { name, text, values } of [...this.#asked]) {
      if (met.has(text) || !/^(?:\s*--.*\n)*\s*select/i.test(text)) continue;
      met.add(text);
      const mode = name === undefined ? 'force_custom_plan' : 'auto';
      await this.#pool.query(`set plan_cache_mode = ${mode}`);
      this.#explained++;
      const explained = {
        name: `explain ${this.#explained}`,
        text: `explain (analyze, buffers) ${text}`,
        values: [...values],
      };
      let rows: { 'QUERY PLAN': string }[] = [];
      // The first finds what is not in memory yet; only after five does PostgreSQL think of a plan for all values.
      for (let time = 0; time < 7; time++) ({ rows } = await this.#pool.query(explained));
      plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
    }
    return plans;
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }
}

const int8 = 20;
const readTypes = ((oid: number, format?: 'text') =>
  oid === int8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser;
