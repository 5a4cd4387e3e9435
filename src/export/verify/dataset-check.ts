import { ContentHash } from '../write/content-hash.ts';
import type { RowBlock } from '../write/row-blocks.ts';
import type { TextFormat } from '../write/text-format.ts';
import type { ListedDataset } from './read-manifest.ts';

/** A dataset as it turns out, over all its files in the order of the manifest. */
export class DatasetCheck {
  readonly #listed: ListedDataset;
  #content: ContentHash | null = null;
  #rows = 0;
  #canTell = true;

  constructor(listed: ListedDataset) {
    this.#listed = listed;
  }

  /** The header line of a CSV file, the same in all of them. */
  header(header: Buffer): void {
    if (this.#content === null) this.#hash('csv')?.addCsvHeader(header);
  }

  rows(block: RowBlock, format: TextFormat): void {
    this.#rows += block.ends.length;
    this.#hash(format)?.add(block);
  }

  /** A file of it could not be read; that has been said, and the rest follows from it. */
  cannotTell(): void {
    this.#canTell = false;
  }

  /** Rows of a file in which they are not looked at. */
  trust(rows: number): void {
    this.#rows += rows;
  }

  problems(): string[] {
    if (!this.#canTell) return [];
    const { dataset, rows, contentSha256 } = this.#listed;
    const problems: string[] = [];
    if (this.#rows !== rows) problems.push(`${dataset}: the files have ${this.#rows} rows, not ${rows}`);
    if (contentSha256 === null) return problems;
    const found = this.#content?.digest() ?? new ContentHash('ndjson').digest();
    if (found !== contentSha256) problems.push(`${dataset}: the content has another content_sha256`);
    return problems;
  }

  #hash(format: TextFormat): ContentHash | null {
    if (this.#listed.contentSha256 === null) return null;
    this.#content ??= new ContentHash(format);
    return this.#content;
  }
}
