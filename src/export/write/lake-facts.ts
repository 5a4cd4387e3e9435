import type { RowGroup } from 'hyparquet';
import { entities, idColumn } from '../../domain/entity.ts';
import type { FileDataset, RowShape } from '../../domain/export.ts';
import { columnsOf, orderOf } from '../../domain/export-columns.ts';
import { packSums } from '../../lake/group-sums.ts';
import { IdFilter } from '../../lake/id-filter.ts';
import type { LakeGroup } from '../../lake/row-group.ts';
import { statisticsOf } from '../../lake/statistics.ts';
import type { FileFacts } from '../../postgres/stores/lake-files.ts';
import { ContentHash } from './content-hash.ts';
import { ndjsonText, ndjsonWriter, type PackedGroup, type RowBlock } from './rows.ts';

/** Gathers what the ledger keeps of a data file of the lake, from its rows, while it is written. */
export class LakeFacts {
  readonly #columns: readonly string[];
  readonly #key: string;
  readonly #toText: (block: RowBlock) => RowBlock;
  readonly #ids = new IdFilter();
  /** Rows of the group, in the buffers that they came in: to copy them would cost as much as to hash them. */
  #pieces: { readonly bytes: Buffer; readonly start: number; readonly ends: number[] }[] = [];
  /** Of events only. */
  readonly #content: ContentHash | null;
  readonly #sums: (Buffer | null)[] = [];

  constructor(dataset: FileDataset, request: RowShape) {
    const columns = columnsOf(dataset, request);
    this.#columns = columns.map(({ name }) => name);
    this.#key = orderOf[dataset][0];
    this.#toText = ndjsonWriter(columns, true);
    this.#content = dataset === 'events' ? new ContentHash(dataset, ndjsonText) : null;
  }

  /** The buffer must not change before the group ends. */
  addRow(bytes: Buffer, start: number, end: number): void {
    if (this.#content === null) return;
    let piece = this.#pieces.at(-1);
    if (piece?.bytes !== bytes) {
      piece = { bytes, start, ends: [] };
      this.#pieces.push(piece);
    }
    piece.ends.push(end - piece.start);
  }

  /** Returns what takes the texts of a column, if they are ids. */
  idsOf(place: number): ((texts: Buffer, start: number, end: number) => void) | null {
    const entity = entities.find((each) => idColumn[each] === this.#columns[place]);
    return entity === undefined ? null : (texts, start, end) => this.#ids.add(entity, texts, start, end);
  }

  /** Ends a group of the rows that were added. */
  endGroup(): void {
    if (this.#content === null) return;
    this.#addSum(null, () => this.#texts());
    this.#pieces = [];
  }

  *#texts(): Generator<RowBlock> {
    for (const { bytes, start, ends } of this.#pieces)
      yield this.#toText({ bytes: bytes.subarray(start, start + (ends.at(-1) ?? 0)), ends });
  }

  /** Adds a group of another file. */
  addGroup({ group, text }: PackedGroup): void {
    for (const entity of entities) {
      const { memory, starts, ends } = group.texts(idColumn[entity]);
      for (let at = 0; at < starts.length; at++) this.#ids.add(entity, memory, starts[at], ends[at]);
    }
    this.#addSum(group.sum, () => [text()]);
  }

  #addSum(known: LakeGroup['sum'], texts: () => Iterable<RowBlock>): void {
    if (this.#content === null) return;
    let sum = known;
    if (sum === null) {
      const own = new ContentHash('events', ndjsonText);
      for (const text of texts()) own.add(text);
      sum = own.sum();
    }
    this.#sums.push(sum);
    this.#content.addGroup({ sum }, texts);
  }

  end(groups: readonly RowGroup[]): FileFacts {
    const keyOf = (group: RowGroup | undefined) =>
      group?.columns[this.#columns.indexOf(this.#key)]?.meta_data?.statistics;
    const [first, last] = [keyOf(groups[0])?.min_value, keyOf(groups.at(-1))?.max_value];
    return {
      statistics: statisticsOf(groups, this.#columns),
      filter: this.#ids.bytes(),
      sums: this.#content && packSums(this.#sums),
      content: this.#content?.digest() ?? null,
      firstMicros: typeof first === 'bigint' ? Number(first) : null,
      lastMicros: typeof last === 'bigint' ? Number(last) : null,
      firstKey: first instanceof Uint8Array ? Buffer.from(first).toString() : null,
    };
  }
}
