import type { Reason } from '../../domain/reject.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { fromByteString } from '../../formats/json-text.ts';
import { CsvChunk } from '../../load/map/csv-cells.ts';
import { RepeatedHeader } from '../../load/map/csv-rows.ts';
import { repeatedHeader } from '../../load/map/reasons.ts';
import type { RecordPlaces } from '../../load/map/record-places.ts';

/** Returns each record of another product's CSV file as the text of a JSON object. */
export class CsvObjects {
  readonly #paths: readonly (readonly [within: string, name: string])[];
  readonly #containers: ReadonlySet<string>;
  readonly #chunk: CsvChunk;
  readonly #repeatedHeader: RepeatedHeader;

  constructor(header: CsvHeader, records: RecordPlaces) {
    this.#paths = header.columns.map(pathOf);
    this.#containers = new Set(this.#paths.map(([within]) => within));
    this.#chunk = new CsvChunk(header, records);
    this.#repeatedHeader = new RepeatedHeader(header.columns, 0);
  }

  index(bytes: Buffer): void {
    this.#chunk.index(bytes);
  }

  read(record: number): string | Reason {
    const chunk = this.#chunk;
    const reason = chunk.find(record);
    if (reason !== null) return reason;
    if (this.#repeatedHeader.isIn(chunk.cells)) return repeatedHeader;
    return chunk.undoDefused() ?? chunk.findCellProblem(record, []) ?? this.#toJson();
  }

  #toJson(): string {
    const { cells } = this.#chunk;
    const members = new Map<string, string[]>([['', []]]);
    for (const [column, [within, name]] of this.#paths.entries()) {
      if (cells.isEmpty(column)) continue;
      const json = jsonOf(fromByteString(cells.byteString(column)));
      // A file may contain an object and also its members, in separate columns.
      const isObject = within === '' && this.#containers.has(name) && json.trimStart().startsWith('{');
      const member = isObject ? json.trim().slice(1, -1) : `${JSON.stringify(name)}:${json}`;
      const container = isObject ? name : within;
      if (member.trim() !== '') members.set(container, [...(members.get(container) ?? []), member]);
    }
    const { '': topLevel = [], ...objects } = Object.fromEntries(members);
    for (const [name, inner] of Object.entries(objects)) topLevel.push(`"${name}":{${inner.join(',')}}`);
    return `{${topLevel.join(',')}}`;
  }
}

/** Names of columns with flattened JSON: an object, a dot, and a member. */
const flattened =
  /^(context|event_properties|group_properties|groups|metadata|properties|traits|user_properties)\.(.+)$/s;

/** Returns the object to which a column belongs ('' for none), and the name of the member. */
function pathOf(column: string): readonly [within: string, name: string] {
  const [, within = '', name = column] = flattened.exec(column) ?? [];
  return [within, name];
}

/** Returns a cell as JSON. Objects and lists are returned unchanged, any other cell as a string. */
function jsonOf(cell: string): string {
  if (/^\s*[{[]/.test(cell)) {
    try {
      JSON.parse(cell);
      return cell;
    } catch {}
  }
  return JSON.stringify(cell);
}
