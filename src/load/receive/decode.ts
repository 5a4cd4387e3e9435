import { SNIFF_BYTES } from '../../domain/limits.ts';
import type { SourceFormat } from '../../domain/source.ts';
import { detectFormat, keysOfObject } from '../../formats/detect-format.ts';
import { detectEncoding, toUtf8 } from '../../formats/text-encoding.ts';
import { peek } from './peek.ts';
import type { Unpacked } from './unpack.ts';

/** Text in UTF-8, or a file of a format that is none, and what it turned out to be. */
export interface Decoded {
  readonly bytes: AsyncIterable<Buffer>;
  readonly format: SourceFormat;
  /** Of what was sent, as `ReadAs` has it. */
  readonly encoding: string | null;
  /** Length of the byte order mark that `bytes` starts with. */
  readonly bomBytes: number;
  /** Of a short file that is one JSON object and was not said to be NDJSON: its keys. */
  readonly objectKeys: readonly string[] | null;
}

/**
 * Makes UTF-8 of what was unpacked, and finds out the format.
 * @throws InputError `unsupported_format`, and what reading throws.
 */
export async function decode({ plain, hints, archived }: Unpacked): Promise<Decoded> {
  if (archived !== null && archived.sheet !== null) {
    return { bytes: plain.all, format: 'xlsx', encoding: null, bomBytes: 0, objectKeys: null };
  }
  const encoding = detectEncoding(plain.head);
  const text = await peek(toUtf8(plain.all, encoding), SNIFF_BYTES);
  const bomBytes = encoding.name === 'utf-8' ? encoding.bomBytes : 0;
  const format = detectFormat(text.head, hints);
  const objectKeys = format === 'ndjson' && text.isWhole ? keysOfObject(text.head, hints) : null;
  const isText = format !== 'parquet' && format !== 'avro';
  return { bytes: text.all, format, encoding: isText ? encoding.name : null, bomBytes, objectKeys };
}
