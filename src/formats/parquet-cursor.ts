import { DamagedFile } from '../domain/errors.ts';
import { MAX_PARQUET_HELD_BYTES } from '../domain/limits.ts';
import type { ParquetLeaf } from './parquet-columns.ts';
import type { ParquetPage, ParquetPages } from './parquet-pages.ts';
import type { JsonText } from './typed-rows.ts';

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
export class LeafCursor {
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

  /** Returns true if a list goes on is seen at the next entry. */
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
