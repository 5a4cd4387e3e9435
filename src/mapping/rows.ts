import type { ChunkRange } from '../domain/chunk.ts';
import type { Entity } from '../domain/entity.ts';
import type { Reject } from '../domain/reject.ts';
import { PropertyTypes } from './property-types.ts';
import { RecordIndex } from './record-index.ts';
import { RowBuffer, UNCOUNTED } from './row-buffer.ts';

const OPEN_BRACE = '\t{';
const CLOSE_BRACE = '}\t';

/** What one chunk comes to: rows per entity, and what was refused. Reused from chunk to chunk. */
export class Rows {
  readonly records = new RecordIndex();
  readonly users = new RowBuffer();
  readonly companies = new RowBuffer();
  /** What properties the rows bear. */
  readonly types = { users: new PropertyTypes(), companies: new PropertyTypes() };
  rejects: Reject[] = [];
  /** The chunk's bytes, to quote refused records from. */
  bytes: Buffer = Buffer.alloc(0);

  /** With a `stamp`, the rows of users are for their table itself; see `RowBuffer.reset`. */
  reset(stamp: Buffer | null = null): void {
    this.records.reset();
    this.users.reset(stamp);
    this.companies.reset();
    this.types.users.reset();
    this.types.companies.reset();
    this.users.shrink();
    this.companies.shrink();
    this.rejects = [];
  }

  /**
   * A user who comes several times is one row, with the last company: the others were named too, and so must
   * exist. To be called once, when all rows are there.
   */
  addLeftCompanies(): void {
    if (this.users.repeated === 0) return;
    for (const rows of this.users.groups()) {
      if (rows.length === 1) continue;
      const companies = rows.map((row) => this.users.companyOf(row));
      const kept = companies.findLast((company) => company !== null);
      for (const [index, company] of companies.entries()) {
        if (company === null || company === '' || company === kept) continue;
        this.add('companies', company, '', null, UNCOUNTED, this.users.recordOf(rows[index] ?? 0));
      }
    }
  }

  /** A record that the database refused after it had passed all checks. */
  rejectRecord(record: number, message: string, chunk: ChunkRange): Reject {
    return this.records.reject(
      record,
      { code: 'refused_by_database', message, column: null },
      chunk,
      this.bytes,
    );
  }

  /**
   * Adds a row. All texts are byte strings, already escaped for COPY. `properties` is the inside of a JSON
   * object; `company` null leaves the company as it is and '' removes it; `flags` as in `RowBuffer`.
   */
  add(
    entity: Entity,
    key: string,
    properties: string,
    company: string | null,
    flags: number,
    record: number,
  ): void {
    const out = this[entity];
    const last = company ?? '\\N';
    out.reserve(key.length + properties.length + last.length + 16);
    const start = out.at;
    const keyEnd = start + key.length;
    const propertyEnd = keyEnd + OPEN_BRACE.length + properties.length;
    const at = start + out.bytes.write(key + OPEN_BRACE + properties + CLOSE_BRACE + last, start, 'latin1');
    out.at = at;
    out.endRow(start, keyEnd, propertyEnd, at, record, flags);
  }
}
