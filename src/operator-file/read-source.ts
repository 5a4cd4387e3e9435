import { MAX_OPERATOR_FILE_BYTES } from '../domain/limits.ts';
import { parseSource } from './parse-source.ts';
import type { Problems } from './problems.ts';
import type { SourceNode } from './source.ts';

const start = { line: 1, column: 1 };

/**
 * The values of a file that a person wrote, each with its place. null: there are none, and the problems say why.
 * `emptyCure` says what to write where nothing is meant.
 */
export function readSource(bytes: Uint8Array, emptyCure: string, problems: Problems): SourceNode | null {
  const text = decode(bytes, problems);
  return text === null ? null : parseSource(text, emptyCure, problems);
}

function decode(bytes: Uint8Array, problems: Problems): string | null {
  if (bytes.length > MAX_OPERATOR_FILE_BYTES) {
    problems.note(start, '', `has ${bytes.length} bytes; at most ${MAX_OPERATOR_FILE_BYTES} are allowed`);
    return null;
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    problems.note(start, '', 'is not UTF-8');
    return null;
  }
}
