import type { RowGroup, SchemaTree } from 'hyparquet';
import { DamagedFile } from '../domain/errors.ts';
import { MAX_PARQUET_HELD_BYTES } from '../domain/limits.ts';
import { leafOf, type ParquetLeaf } from './parquet-columns.ts';
import { type PageSource, type ParquetPage, ParquetPages } from './parquet-pages.ts';
import type { JsonText, TypedRows } from './typed-rows.ts';

/*
 * Builds rows from columns. A column of the table is a tree of lists, maps and structs, and the file holds only its leaves. Each
 * entry of a leaf has two levels: which list it continues, and how many of the nodes around it exist. A row is read down the
 * tree, from the current entries of its leaves. Pages are held until the last row that begins in them is complete.
 */

export interface ParquetColumn {
  readonly rows: number;
  /** Reads pages until a row is complete; there is none after the last. */
  fill(): Promise<void>;
  read(): JsonText;
}

export interface ColumnShape {
  readonly leaves: readonly ParquetLeaf[];
  open(cursors: readonly LeafCursor[]): () => JsonText;
}

export function openColumn(
  { leaves, open }: ColumnShape,
  chunks: RowGroup['columns'],
  source: PageSource,
  held: HeldPages,
): ParquetColumn {
  const cursors = leaves.map((leaf, index) => {
    const column = chunks[index];
    if (column === undefined) throw new DamagedFile('a row group lacks a column');
    return new LeafCursor(leaf, new ParquetPages(leaf, column, source), held);
  });
  return {
    get rows() {
      return cursors.reduce((rows, cursor) => Math.min(rows, cursor.rows), Number.POSITIVE_INFINITY);
    },
    async fill() {
      for (const cursor of cursors) if (cursor.rows === 0) await cursor.fill();
    },
    read: open(cursors),
  };
}

/** Reads a value of a row, or skips the entries that mark it as absent. */
interface Reader {
  read(): JsonText;
  skip(): void;
  /** A leaf; down to the value, all leaves have the same levels. */
  readonly first: LeafCursor;
}

interface Levels {
  readonly definition: number;
  readonly repetition: number;
  readonly depth: number;
}

/** Builds the reader of a part of the tree, taking its cursors in their order. */
type BuildReader = (next: () => LeafCursor) => Reader;

export function shapeOf(node: SchemaTree, rows: TypedRows): ColumnShape {
  const shape = new Shape(rows);
  const build = shape.build(node, { definition: 0, repetition: 0, depth: 1 });
  return {
    leaves: shape.leaves,
    open(cursors) {
      const [only] = cursors;
      if (only !== undefined && node.children.length === 0 && node.element.repetition_type !== 'REPEATED') {
        return () => rows.count(only.nextValue());
      }
      const left = cursors.values();
      const reader = build(() => left.next().value as LeafCursor);
      return () => {
        for (const cursor of cursors) cursor.startRow();
        return reader.read();
      };
    },
  };
}

class Shape {
  readonly leaves: ParquetLeaf[] = [];
  readonly #rows: TypedRows;

  constructor(rows: TypedRows) {
    this.#rows = rows;
  }

  /** Reads a node. One that is repeated without a list around it is also a list, which cannot be null. */
  build(node: SchemaTree, above: Levels): BuildReader {
    const { repetition_type: repeats } = node.element;
    if (repeats === 'REPEATED') return this.#list(above, (levels) => this.#value(node, levels));
    if (repeats !== 'OPTIONAL') return this.#value(node, above);
    const levels = { ...above, definition: above.definition + 1 };
    const build = this.#value(node, levels);
    // A leaf checks its own levels.
    return node.children.length === 0 ? build : (next) => this.#optional(build(next), levels.definition);
  }

  #optional(inner: Reader, definition: number): Reader {
    const { first } = inner;
    return {
      ...inner,
      read: () => {
        if (first.definition >= definition) return inner.read();
        inner.skip();
        return this.#rows.count('null');
      },
    };
  }

  /** Builds a node that exists: `above` are its levels in that case. */
  #value(node: SchemaTree, above: Levels): BuildReader {
    const { element, children } = node;
    if (children.length === 0) return this.#leaf(node, above);
    const kind = element.logical_type?.type ?? element.converted_type;
    if (kind === 'VARIANT') throw new DamagedFile('columns of VARIANT are not read');
    const [only] = children;
    const holdsItems = children.length === 1 && only?.element.repetition_type === 'REPEATED';
    const inside = { ...above, depth: above.depth + 1 };
    if (only !== undefined && holdsItems && kind === 'LIST') return this.#items(only, inside);
    if (
      only !== undefined &&
      holdsItems &&
      (kind === 'MAP' || kind === 'MAP_KEY_VALUE') &&
      only.children.length === 2
    ) {
      return this.#map(only, inside);
    }
    return this.#struct(children, inside);
  }

  #leaf(node: SchemaTree, { definition, repetition, depth }: Levels): BuildReader {
    const leaf = leafOf(node, { maxDefinition: definition, maxRepetition: repetition, depth }, this.#rows);
    this.leaves.push(leaf);
    return (next) => {
      const first = next();
      return { first, read: () => this.#rows.count(first.take()), skip: () => first.skip() };
    };
  }

  #struct(children: readonly SchemaTree[], levels: Levels): BuildReader {
    const members = children.map((child) => ({
      key: `${JSON.stringify(child.element.name)}:`,
      build: this.build(child, levels),
    }));
    return (next) => {
      const readers = members.map(({ key, build }) => ({ key, reader: build(next) }));
      return {
        first: firstOf(readers[0]?.reader),
        read: () => {
          let text = this.#rows.count('{');
          for (const { key, reader } of readers) {
            text += `${text === '{' ? '' : ','}${this.#rows.count(key)}${reader.read()}`;
          }
          return `${text}}`;
        },
        skip: () => {
          for (const { reader } of readers) reader.skip();
        },
      };
    };
  }

  /** Builds a list: it contains a repeated node, which contains the item; older writers leave out one of the two. */
  #items(repeated: SchemaTree, above: Levels): BuildReader {
    const [item] = repeated.children;
    const { name } = repeated.element;
    const isItem = repeated.children.length !== 1 || name === 'array' || name.endsWith('_tuple');
    return this.#list(above, (levels) =>
      isItem || item === undefined
        ? this.#value(repeated, levels)
        : this.build(item, { ...levels, depth: levels.depth + 1 }),
    );
  }

  #list(above: Levels, item: (levels: Levels) => BuildReader): BuildReader {
    const levels = { ...above, definition: above.definition + 1, repetition: above.repetition + 1 };
    const build = item(levels);
    return (next) => {
      const reader = build(next);
      return this.#repeated(reader, levels, ['[', ']'], () => reader.read());
    };
  }

  #map(entry: SchemaTree, above: Levels): BuildReader {
    const levels = { ...above, definition: above.definition + 1, repetition: above.repetition + 1 };
    const inside = { ...levels, depth: levels.depth + 1 };
    const [key, value] = entry.children.map((child) => this.build(child, inside));
    if (key === undefined || value === undefined) throw new DamagedFile('a map has no values');
    return (next) => {
      const [keys, values] = [key(next), value(next)];
      const skip = () => {
        keys.skip();
        values.skip();
      };
      return this.#repeated({ first: keys.first, read: keys.read, skip }, levels, ['{', '}'], () => {
        const name = keys.read();
        return `${name.startsWith('"') ? name : JSON.stringify(name)}:${values.read()}`;
      });
    };
  }

  #repeated(
    item: Reader,
    { definition, repetition }: Levels,
    [open, close]: readonly [string, string],
    read: () => JsonText,
  ): Reader {
    const { first } = item;
    return {
      first,
      skip: () => item.skip(),
      read: () => {
        let text = this.#rows.count(open);
        if (first.definition < definition) item.skip();
        else {
          text += read();
          while (first.repetition >= repetition) text += `,${read()}`;
        }
        return text + close;
      },
    };
  }
}

function firstOf(reader: Reader | undefined): LeafCursor {
  if (reader === undefined) throw new DamagedFile('a struct has no members');
  return reader.first;
}

export class HeldPages {
  #bytes = 0;

  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > MAX_PARQUET_HELD_BYTES) {
      throw new DamagedFile(
        'its pages are too large to be read side by side; write smaller pages or row groups',
      );
    }
  }
}

/** The entry of a leaf that is read next. */
class LeafCursor {
  /** The number of complete rows that have not been begun. */
  rows = 0;
  repetition = 0;
  definition = 0;
  readonly #leaf: ParquetLeaf;
  readonly #pages: ParquetPages;
  readonly #held: HeldPages;
  readonly #waiting: ParquetPage[] = [];
  #page: ParquetPage | null = null;
  #left = 0;
  /** True while the levels above belong to an entry that has not been taken. */
  #isAtEntry = false;
  /** True while the last row that began may continue in the next page. */
  #isRowOpen = false;
  #dictionaryBytes = 0;

  constructor(leaf: ParquetLeaf, pages: ParquetPages, held: HeldPages) {
    this.#leaf = leaf;
    this.#pages = pages;
    this.#held = held;
  }

  async fill(): Promise<void> {
    while (this.rows === 0) {
      const page = await this.#pages.next();
      this.#held.add(this.#pages.heldBytes - this.#dictionaryBytes);
      this.#dictionaryBytes = this.#pages.heldBytes;
      if (page === null) {
        this.rows = this.#isRowOpen ? 1 : 0;
        this.#isRowOpen = false;
        return;
      }
      this.#held.add(page.heldBytes);
      this.#waiting.push(page);
      this.rows += page.rows;
      if (this.#leaf.maxRepetition === 0) continue;
      if (this.#isRowOpen) this.rows++;
      if (this.#isRowOpen || page.rows > 0) this.rows--;
      this.#isRowOpen ||= page.rows > 0;
    }
  }

  nextValue(): JsonText {
    while (this.#left === 0) {
      if (!this.#turnPage()) throw tooFew();
    }
    this.#left--;
    this.rows--;
    const page = this.#page as ParquetPage;
    const isThere = page.definition === null || page.definition.next() === this.#leaf.maxDefinition;
    return isThere ? page.next() : 'null';
  }

  startRow(): void {
    if (!this.#isAtEntry) this.#moveOn();
    if (!this.#isAtEntry || this.repetition !== 0) throw tooFew();
    this.rows--;
  }

  /** Returns the value of the entry, `null` if it has none, and goes on. */
  take(): JsonText {
    const text =
      this.definition === this.#leaf.maxDefinition && this.#page !== null ? this.#page.next() : 'null';
    this.#leave();
    return text;
  }

  /** Skips an entry that marks a node around it as null or empty. */
  skip(): void {
    if (this.definition === this.#leaf.maxDefinition)
      throw new DamagedFile('parts of a value contradict one another');
    this.#leave();
  }

  #leave(): void {
    if (!this.#isAtEntry) throw tooFew();
    this.#isAtEntry = false;
    if (this.#leaf.maxRepetition > 0) this.#moveOn();
  }

  #moveOn(): void {
    this.repetition = 0;
    while (this.#left === 0) {
      if (!this.#turnPage()) return;
    }
    this.#left--;
    this.repetition = this.#page?.repetition?.next() ?? 0;
    this.definition = this.#page?.definition?.next() ?? this.#leaf.maxDefinition;
    this.#isAtEntry = true;
  }

  #turnPage(): boolean {
    if (this.#page !== null) this.#held.add(-this.#page.heldBytes);
    this.#page = this.#waiting.shift() ?? null;
    this.#left = this.#page?.entries ?? 0;
    return this.#page !== null;
  }
}

function tooFew(): DamagedFile {
  return new DamagedFile('a column has fewer values than there are rows');
}
