import { RECORDS_AT_A_TIME } from '../domain/limits.ts';
import type { ChunkRange } from '../domain/load.ts';
import type { Reason } from '../domain/reject.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import { type ColumnPlan, type EventFilePlan, isEventFile, locateReject } from './column-plan.ts';
import { CsvChunk } from './csv-chunk.ts';
import { CsvEvents } from './csv-events.ts';
import { CsvProfiles } from './csv-profiles.ts';
import type { Rows } from './rows.ts';

/** Turns chunks of one CSV, of profiles or of records that say what they are, into rows and rejects. */
export class CsvRows {
  readonly #header: CsvHeader;
  readonly #plan: ColumnPlan | EventFilePlan;
  readonly #rows: Rows;
  readonly #chunk: CsvChunk;
  readonly #writer: CsvProfiles | CsvEvents;
  readonly #isProperty: readonly boolean[];
  /** The buffer that `#chunk` has indexed. */
  #indexed: Buffer | null = null;

  constructor(header: CsvHeader, plan: ColumnPlan | EventFilePlan, rows: Rows) {
    this.#header = header;
    this.#plan = plan;
    this.#rows = rows;
    this.#chunk = new CsvChunk(header, rows.records, isEventFile(plan) ? header.columns : plan.names);
    const { cells } = this.#chunk;
    this.#writer = isEventFile(plan)
      ? new CsvEvents(plan, cells, rows)
      : new CsvProfiles(header.columns, plan, cells, rows);
    this.#isProperty = plan.roles.map((role) => role === 'property' || role === 'url');
  }

  /** Digests the records of the chunk that is read next, and offers those profiles whose key is in plain sight. */
  offerUnchanged(bytes: Buffer): void {
    const plan = this.#plan;
    const writer = this.#writer;
    if (isEventFile(plan) || writer instanceof CsvEvents) return;
    const chunk = this.#chunk;
    chunk.index(bytes);
    this.#indexed = bytes;
    const { digests, unchanged, records } = this.#rows;
    unchanged.reset(bytes);
    for (let record = 0; record < records.count; record++) {
      digests.add(records.starts[record] ?? 0, records.ends[record] ?? 0);
      if (!chunk.isSound(record) || writer.mustRead(record)) continue;
      if (!chunk.findPlainCell(record, plan.idIndex)) continue;
      const { starts, ends } = chunk.cells;
      unchanged.offer(plan.entity, record, starts[plan.idIndex] ?? 0, ends[plan.idIndex] ?? 0);
    }
  }

  /** Reads the chunk, RECORDS_AT_A_TIME by each step; rows and rejects are in the `Rows` this was made with. */
  *read(chunk: ChunkRange, bytes: Buffer): Generator<void, void> {
    const { unchanged, records, rejects } = this.#rows;
    if (this.#indexed !== bytes) this.#chunk.index(bytes);
    this.#indexed = null;
    this.#writer.reset();
    const names = isEventFile(this.#plan) ? this.#plan.roles : this.#plan.names;
    for (let record = 0; record < records.count; record++) {
      if (record % RECORDS_AT_A_TIME === RECORDS_AT_A_TIME - 1) yield;
      const reason = unchanged.has(record) ? this.#pass(record) : this.#readRecord(record);
      if (reason === null) continue;
      const reject = records.reject(record, reason, chunk, bytes);
      rejects.push(locateReject(reject, names, this.#header.columns));
    }
    this.#writer.finish();
  }

  /** Notes the types of a record that is passed over, as if it were read. */
  #pass(record: number): null {
    if (this.#writer instanceof CsvProfiles && this.#writer.samples(record)) {
      this.#chunk.find(record);
      this.#chunk.undoDefused();
      this.#writer.sample(record);
    }
    return null;
  }

  /** Returns null if the record became a row. */
  #readRecord(record: number): Reason | null {
    const chunk = this.#chunk;
    const { starts, ends } = this.#rows.records;
    return (
      chunk.find(record) ??
      this.#writer.admit(record) ??
      chunk.undoDefused() ??
      chunk.findCellProblem(record, this.#isProperty) ??
      this.#writer.write(record, (ends[record] ?? 0) - (starts[record] ?? 0))
    );
  }
}
