import { MAX_CATALOGUE_FILE_BYTES } from '../../domain/limits.ts';
import { parseSource } from './parse-source.ts';
import type { Problems } from './problems.ts';
import type { SourceNode } from './source.ts';

const start = { line: 1, column: 1 };

/** The values of a file that a person wrote, each with its place. null: there are none, and the problems say why. */
export function readSource(bytes: Uint8Array, problems: Problems, cureForEmpty: string): SourceNode | null {
  const text = decode(bytes, problems);
  return text === null ? null : parseSource(text, problems, cureForEmpty);
}

function decode(bytes: Uint8Array, problems: Problems): string | null {
  if (bytes.length > MAX_CATALOGUE_FILE_BYTES) {
    problems.note(start, '', `has ${bytes.length} bytes; at most ${MAX_CATALOGUE_FILE_BYTES} are allowed`);
    return null;
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    problems.note(start, '', 'is not UTF-8');
    return null;
  }
}
