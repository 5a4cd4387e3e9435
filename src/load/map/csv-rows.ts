import { MAX_VALUE_BYTES } from '../../base/limits.ts';
import type { CellType } from '../../domain/data-type.ts';
import { type Entity, idColumn } from '../../domain/entity.ts';
import type { ChunkRange } from '../../domain/load.ts';
import type { Reason } from '../../domain/reject.ts';
import { type CsvHeader, cellTypeOf } from '../../formats/csv-header.ts';
import { fromByteString, isObject, parseJsonText, toByteString } from '../../formats/json-text.ts';
import { RECORDS_AT_A_TIME, SAMPLED_ROWS } from '../limits.ts';
import { readTyped } from './cell-types.ts';
import { CellFiller, CellList, RecordCells, role, roleNames } from './cells.ts';
import { type ColumnPlan, inJsonbOrder, locateReject } from './column-plan.ts';
import { type CsvCells, CsvChunk } from './csv-cells.ts';
import { idOf } from './fields.ts';
import { JsonMembers } from './json-members.ts';
import { KnownName } from './known-names.ts';
import { repeatedHeader } from './reasons.ts';
import { MAX_ESCAPED_BYTES } from './row-text.ts';
import { RowWriter } from './row-writer.ts';
import type { Rows } from './rows.ts';

/** Maps CSV to rows, byte by byte. Very few cells become strings. */
export class CsvRows {
  readonly hasKinds: boolean;
  readonly #header: CsvHeader;
  readonly #plan: ColumnPlan;
  readonly #rows: Rows;
  readonly #chunk: CsvChunk;
  readonly #cells: CsvCells;
  readonly #record: RecordCells;
  readonly #isProperty: readonly boolean[];
  readonly #nameBytes: number;
  readonly #entity: Entity;
  readonly #idIndex: number;
  readonly #metadataIndex: number;
  readonly #members = new JsonMembers();
  readonly #properties = new CellFiller(() => role.property);
  readonly #kindIndex: number;
  readonly #typed: readonly TypedColumn[];
  readonly #repeatedHeader: RepeatedHeader;
  readonly #writer: RowWriter;
  #indexed: Buffer | null = null;

  constructor(header: CsvHeader, plan: ColumnPlan, rows: Rows) {
    const { roles, hasKinds } = plan;
    this.hasKinds = hasKinds;
    this.#header = header;
    this.#plan = plan;
    this.#rows = rows;
    this.#chunk = new CsvChunk(header, rows.records);
    this.#cells = this.#chunk.cells;
    this.#record = new RecordCells(listOf(this.#cells, plan));
    this.#record.hasKind = hasKinds;
    this.#record.findFields();
    this.#isProperty = roles.map((role) => ['property', 'url', 'removed'].includes(role));
    this.#nameBytes = this.#record.own.names.reduce((sum, { prefix }) => sum + prefix.length + 3, 0);
    this.#entity = plan.entity === 'companies' ? 'companies' : 'users';
    this.#idIndex = roles.indexOf(idColumn[this.#entity]);
    this.#metadataIndex = roles.indexOf('metadata');
    this.#kindIndex = roles.indexOf('event_type');
    this.#typed = typedColumns(header);
    this.#repeatedHeader = new RepeatedHeader(header.columns, hasKinds ? this.#kindIndex : this.#idIndex);
    this.#writer = new RowWriter(plan.entity, rows);
  }

  /** Computes the digests of the next chunk, and searches for unchanged records with plain ids. */
  offerUnchanged(bytes: Buffer): void {
    const chunk = this.#chunk;
    chunk.index(bytes);
    this.#indexed = bytes;
    const { digests, unchanged, records } = this.#rows;
    const { starts, ends } = this.#cells;
    unchanged.reset(bytes);
    for (let record = 0; record < records.count; record++) {
      digests.add(records.starts[record] ?? 0, records.ends[record] ?? 0);
      // If the file has a column `metadata`, its first records are not skipped, because the types
      // in `metadata` of skipped records are not detected.
      if (record < SAMPLED_ROWS && this.#metadataIndex !== -1) continue;
      if (chunk.isSound(record) && chunk.findPlainCell(record, this.#idIndex))
        unchanged.offer(this.#entity, record, starts[this.#idIndex] ?? 0, ends[this.#idIndex] ?? 0);
    }
  }

  /** Reads the chunk into `Rows`, RECORDS_AT_A_TIME records per step. */
  *read(chunk: ChunkRange, bytes: Buffer): Generator<void, void> {
    const rows = this.#rows;
    const { unchanged, records } = rows;
    if (this.#indexed !== bytes) this.#chunk.index(bytes);
    this.#indexed = null;
    for (let record = 0; record < records.count; record++) {
      if (record % RECORDS_AT_A_TIME === RECORDS_AT_A_TIME - 1) yield;
      const reason =
        rows.refusalOf(record) ?? (unchanged.has(record) ? this.#pass(record) : this.#readRecord(record));
      if (reason === null) continue;
      const reject = records.reject(record, reason, chunk, bytes);
      rows.addReject(locateReject(reject, this.#plan.roles, this.#header.columns));
    }
    this.#writer.finishCsv(this.#record.own);
  }

  /**
   * ID of the record's user, even if the record was refused. `null` if the record has no valid user
   * id.
   */
  userOf(record: number): string | null {
    if (this.#entity !== 'users' || this.#chunk.count(record) <= this.#idIndex) return null;
    this.#chunk.undoDefused();
    return idOf(this.#textOf(this.#idIndex));
  }

  #pass(record: number): null {
    if (record >= SAMPLED_ROWS) return null;
    this.#findCells(record);
    this.#record.metadata.count = 0;
    this.#typeCells();
    this.#writer.sample(this.#record, this.#entity);
    return null;
  }

  #readRecord(record: number): Reason | null {
    const problem = this.#findCells(record) ?? this.#chunk.findCellProblem(record, this.#isProperty);
    return problem ?? this.#write(record);
  }

  #textOf(column: number): string {
    return fromByteString(this.#cells.byteString(column));
  }

  #write(record: number): Reason | null {
    this.#properties.dropped = 0;
    this.#readMetadata();
    const { starts, ends } = this.#rows.records;
    const length = (ends[record] ?? 0) - (starts[record] ?? 0);
    const escapedLength = this.#cells.hasSpecial ? MAX_ESCAPED_BYTES * length : length;
    this.#record.size = escapedLength + this.#nameBytes + this.#record.metadata.size;
    const untyped = this.#typeCells();
    if (untyped !== null) return untyped;
    const { dropped } = this.#properties;
    if (dropped === 0) return this.#writer.write(this.#record, record);
    return this.#rows.writeWithout(dropped, record, () => this.#writer.write(this.#record, record));
  }

  #findCells(record: number): Reason | null {
    const unread = this.#chunk.find(record);
    if (unread !== null) return unread;
    if (this.#repeatedHeader.isIn(this.#cells)) return repeatedHeader;
    this.#record.own.bytes = this.#cells.bytes;
    this.#record.found = null;
    this.#chunk.undoDefused();
    return null;
  }

  /**
   * Reads the cells of columns with a declared type. Returns a reason if a cell has another type.
   */
  #typeCells(): Reason | null {
    if (this.#typed.length === 0) return null;
    const { own } = this.#record;
    const texts = new Map<number, string>();
    for (const { column, name, type } of this.#typed) {
      if (this.#cells.isEmpty(column)) continue;
      const text = this.#cells.text(column);
      const cell = readTyped(type, text, name);
      if ('code' in cell) return cell;
      own.kinds[column] = cell.kind;
      if (cell.text !== text) texts.set(column, cell.text);
    }
    if (texts.size > 0) this.#record.size += own.rewrite(texts);
    return null;
  }

  /**
   * Reads the cells of `metadata`. If `metadata` cannot be read, sets the problem of the record.
   */
  #readMetadata(): void {
    const record = this.#record;
    const list = record.metadata;
    record.problem = null;
    list.count = 0;
    if (this.#metadataIndex === -1 || this.#cells.isEmpty(this.#metadataIndex)) return;
    const text = this.#cells.byteString(this.#metadataIndex);
    if (
      text.length <= MAX_VALUE_BYTES &&
      this.#members.walkProperties(list, Buffer.from(`${text}\n`, 'latin1'))
    )
      return;
    list.count = 0;
    const parsed = parseJsonText(fromByteString(text));
    if ('code' in parsed) record.problem = { ...parsed, column: 'metadata' };
    else if (isObject(parsed.value))
      record.problem = this.#properties.fill(
        list,
        parsed.value,
        { ...parsed, length: text.length },
        'metadata',
      );
    else
      record.problem = {
        code: 'invalid_type',
        message: 'metadata must be a JSON object',
        column: 'metadata',
      };
  }
}

interface TypedColumn {
  readonly column: number;
  readonly name: string;
  readonly type: CellType;
}

function typedColumns(header: CsvHeader): TypedColumn[] {
  if (header.types === undefined) return [];
  return header.columns.flatMap((name, column) => {
    const type = cellTypeOf(header, name);
    return type === undefined ? [] : [{ column, name, type }];
  });
}

/** Returns the cells in the order in which jsonb stores properties. */
function listOf(cells: CsvCells, { roles, names }: ColumnPlan): CellList {
  const list = new CellList();
  list.isCsv = true;
  list.count = roles.length;
  list.starts = cells.starts;
  list.ends = cells.ends;
  list.kinds = cells.special;
  list.names = names.map((name, column) => {
    const columnRole = roles[column] ?? 'ignored';
    const number =
      columnRole === 'property' || columnRole === 'ignored' ? role[columnRole] : roleNames.get(columnRole);
    return new KnownName(toByteString(name), number ?? role.property);
  });
  list.order = Int32Array.from(inJsonbOrder([...roles.keys()], names));
  return list;
}

/**
 * Byte order mark as a byte string. A file that was joined from several files may contain several
 * of these marks.
 */
const byteOrderMark = '\xef\xbb\xbf';

/** Recognises the headers within a file that was joined from several files. */
export class RepeatedHeader {
  readonly #names: readonly string[];
  readonly #idIndex: number;
  readonly #idName: Buffer;

  constructor(columns: readonly string[], idIndex: number) {
    this.#names = columns.map(toByteString);
    this.#idIndex = idIndex;
    this.#idName = Buffer.from(this.#names[idIndex] ?? '', 'latin1');
  }

  /**
   * True if the record is a header. For most records, the length or the first byte of the id is
   * enough to decide.
   */
  isIn(cells: CsvCells): boolean {
    const { bytes } = cells;
    const name = this.#idName;
    const from = cells.starts[this.#idIndex] ?? 0;
    const start = bytes[from] === 0xef && this.#idIndex === 0 ? from + byteOrderMark.length : from;
    if ((cells.ends[this.#idIndex] ?? 0) - start !== name.length) return false;
    for (let at = 0; at < name.length; at++) if (bytes[start + at] !== name[at]) return false;
    const nameIn = (column: number): string => {
      const cell = cells.byteString(column);
      return column === 0 && cell.startsWith(byteOrderMark) ? cell.slice(byteOrderMark.length) : cell;
    };
    // It is enough that more than half of the names match, because sluice may have named the other
    // columns itself.
    const same = this.#names.filter((name, column) => nameIn(column).trim() === name).length;
    return 2 * same > this.#names.length;
  }
}
