import { Composer, type Document, LineCounter, type ParsedNode, Parser } from 'yaml';
import { MAX_OPERATOR_FILE_DEPTH } from '../domain/limits.ts';
import { findTooDeep } from './nesting.ts';
import type { Problems } from './problems.ts';
import type { Position, SourceNode } from './source.ts';
import { SourceBuilder } from './source-builder.ts';

/**
 * Version 1.2 whatever the file says, so that `yes` and `on` stay text; no types beyond those of JSON. Repeated names
 * are found by `SourceBuilder`, each once and in linear time.
 */
const options = {
  version: '1.2',
  schema: 'core',
  resolveKnownTags: false,
  merge: false,
  uniqueKeys: false,
  prettyErrors: false,
} as const;

/**
 * Reads YAML 1.2, of which JSON is a part. null: it is not even that, and the problems say why. `emptyCure` says what to
 * write where nothing is meant.
 */
export function parseSource(text: string, emptyCure: string, problems: Problems): SourceNode | null {
  const lines = new LineCounter();
  const tokens = [...new Parser(lines.addNewLine).parse(text)];
  const positionOf = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  // What follows works by recursion, and a stack that overflows in a library is not sure to be survived.
  const tooDeep = findTooDeep(tokens, MAX_OPERATOR_FILE_DEPTH);
  if (tooDeep !== null) {
    problems.note(
      positionOf(tooDeep),
      '',
      `is nested too deep here: at most ${MAX_OPERATOR_FILE_DEPTH} levels`,
    );
    return null;
  }
  const [document, second] = new Composer(options).compose(tokens, true, text.length);
  if (document === undefined || noteErrors(document, positionOf, problems)) return null;
  if (second !== undefined) {
    problems.note(positionOf(second.range[0]), '', 'holds a second document here; put everything into one');
    return null;
  }
  if (document.contents === null) {
    problems.note({ line: 1, column: 1 }, '', `is empty; ${emptyCure}`);
    return null;
  }
  return new SourceBuilder(positionOf, problems).build(document.contents as ParsedNode, '');
}

/** The first error of each line: those behind it are mostly its consequences. */
function noteErrors(
  { errors }: Document.Parsed,
  positionOf: (offset: number) => Position,
  problems: Problems,
): boolean {
  const lines = new Set<number>();
  for (const { message, pos } of errors) {
    const position = positionOf(pos[0]);
    if (!lines.has(position.line)) problems.note(position, '', `is no YAML and no JSON here: ${message}`);
    lines.add(position.line);
  }
  return errors.length > 0;
}
