/**
 * The YAML or JSON of a file that a person wrote, as a tree of plain values that know their line and column. Size,
 * nesting and lists are bounded; whatever JSON could not say (aliases, tags, other numbers) is refused at its place.
 */
import {
  Composer,
  type CST,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  type ParsedNode,
  Parser,
  type YAMLMap,
} from 'yaml';
import {
  MAX_OPERATOR_FILE_BYTES,
  MAX_OPERATOR_FILE_DEPTH,
  MAX_OPERATOR_FILE_ITEMS,
  MAX_OPERATOR_FILE_PROBLEMS,
} from '../domain/limits.ts';
import { type Keys, pathText } from './schema.ts';

/** A position in a file: line and column, both from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** A value of the file that knows where it stands. */
export type SourceNode = Position &
  (
    | { readonly kind: 'object'; readonly members: readonly SourceMember[] }
    | { readonly kind: 'list'; readonly items: readonly SourceNode[] }
    | { readonly kind: 'scalar'; readonly value: string | number | boolean | null }
    /** Something that cannot stand in such a file; it has been reported. */
    | { readonly kind: 'refused' }
  );

/** Stands where its name does. */
export interface SourceMember extends Position {
  readonly name: string;
  readonly value: SourceNode;
}

/** Something that is wrong with a file. */
export interface FileProblem extends Position {
  /** `segments[2].title`; empty for the file as a whole. */
  readonly path: string;
  /** A sentence that begins with the path: what is wrong and, where it is not plain, what to do. */
  readonly message: string;
}

/** Collects what is found wrong while a file is read. */
export class FileProblems {
  readonly #found: FileProblem[] = [];
  #count = 0;

  /** In the order of the file; of a great many, the first that were met. */
  get found(): readonly FileProblem[] {
    return this.#found.toSorted((a, b) => a.line - b.line || a.column - b.column);
  }

  /** The number of problems, with those beyond the limit. */
  get count(): number {
    return this.#count;
  }

  /** `what` goes on from the path: `must be text`. */
  add({ line, column }: Position, keys: Keys, what: string): void {
    this.#count++;
    if (this.#found.length >= MAX_OPERATOR_FILE_PROBLEMS) return;
    const path = pathText('', keys);
    this.#found.push({ line, column, path, message: `${path === '' ? 'the file' : path} ${what}` });
  }
}

/**
 * Version 1.2 whatever the file says, so that `yes` and `on` stay text; no types beyond those of JSON. Repeated names
 * are found below, each once and in linear time.
 */
const options = {
  version: '1.2',
  schema: 'core',
  resolveKnownTags: false,
  merge: false,
  uniqueKeys: false,
  prettyErrors: false,
} as const;

const start = { line: 1, column: 1 };

/**
 * Reads YAML 1.2, of which JSON is a part. null: it is not even that, and `problems` says why. `emptyCure` says what to
 * write where nothing is meant.
 */
export function parseSource(bytes: Uint8Array, emptyCure: string, problems: FileProblems): SourceNode | null {
  const text = decode(bytes, problems);
  if (text === null) return null;
  const lines = new LineCounter();
  const tokens = [...new Parser(lines.addNewLine).parse(text)];
  const builder = new SourceBuilder(lines, problems);
  // The rest recurses, and not every library survives a stack overflow.
  const tooDeep = findTooDeep(tokens);
  if (tooDeep !== null) {
    const what = `is nested too deep here: at most ${MAX_OPERATOR_FILE_DEPTH} levels`;
    problems.add(builder.positionOf(tooDeep), [], what);
    return null;
  }
  const [document, second] = new Composer(options).compose(tokens, true, text.length);
  if (document === undefined || builder.reportErrors(document)) return null;
  if (second !== undefined) {
    const what = 'holds a second document here; put everything into one';
    problems.add(builder.positionOf(second.range[0]), [], what);
    return null;
  }
  if (document.contents === null) {
    problems.add(start, [], `is empty; ${emptyCure}`);
    return null;
  }
  return builder.build(document.contents as ParsedNode, []);
}

function decode(bytes: Uint8Array, problems: FileProblems): string | null {
  if (bytes.length > MAX_OPERATOR_FILE_BYTES) {
    problems.add(start, [], `has ${bytes.length} bytes; at most ${MAX_OPERATOR_FILE_BYTES} are allowed`);
    return null;
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    problems.add(start, [], 'is not UTF-8');
    return null;
  }
}

/** Offset of something nested too deep, or null. Without recursion, which is what it guards. */
function findTooDeep(tokens: readonly CST.Token[]): number | null {
  const pending: [token: CST.Token, level: number][] = tokens.map((token) => [token, 0]);
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [token, level] = next;
    if (token.type === 'document') {
      if (token.value !== undefined) pending.push([token.value, level]);
    } else if ('items' in token) {
      if (level === MAX_OPERATOR_FILE_DEPTH) return token.offset;
      for (const { key, value } of token.items) {
        if (key) pending.push([key, level + 1]);
        if (value) pending.push([value, level + 1]);
      }
    }
  }
  return null;
}

/** Makes a plain tree of what the library parsed, without what such a file has no use for. */
class SourceBuilder {
  readonly #lines: LineCounter;
  readonly #problems: FileProblems;

  constructor(lines: LineCounter, problems: FileProblems) {
    this.#lines = lines;
    this.#problems = problems;
  }

  positionOf(offset: number): Position {
    const { line, col } = this.#lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  }

  /** The first error of each line: those behind it are mostly its consequences. */
  reportErrors({ errors }: Document.Parsed): boolean {
    const lines = new Set<number>();
    for (const { message, pos } of errors) {
      const position = this.positionOf(pos[0]);
      if (!lines.has(position.line)) {
        this.#problems.add(position, [], `is no YAML and no JSON here: ${message}`);
      }
      lines.add(position.line);
    }
    return errors.length > 0;
  }

  build(node: ParsedNode, keys: Keys): SourceNode {
    const position = this.positionOf(node.range[0]);
    // An alias may stand for the same value many times over, so that a few lines become gigabytes.
    if (isAlias(node)) return this.#refuse(position, keys, 'is an alias (*); write the value out');
    if (node.tag !== undefined) return this.#refuse(position, keys, `has a tag (${node.tag}); leave it out`);
    if (isMap(node)) return { kind: 'object', ...position, members: this.#members(node, keys) };
    if (isSeq(node)) {
      if (node.items.length > MAX_OPERATOR_FILE_ITEMS) {
        const what = `has ${node.items.length} items; at most ${MAX_OPERATOR_FILE_ITEMS} are allowed`;
        return this.#refuse(position, keys, what);
      }
      const items = node.items.map((item, index) => this.build(item as ParsedNode, [...keys, index]));
      return { kind: 'list', ...position, items };
    }
    if (isScalar(node)) return this.#scalar(node.value, node.source ?? '', position, keys);
    return this.#refuse(position, keys, 'is nothing that JSON has');
  }

  #members(map: YAMLMap, keys: Keys): SourceMember[] {
    const members = new Map<string, SourceMember>();
    for (const pair of map.items) {
      const member = this.#member(pair as Pair<ParsedNode, ParsedNode | null>, keys);
      if (member === null) continue;
      const first = members.get(member.name);
      if (first === undefined) members.set(member.name, member);
      else {
        const what = `stands here again; line ${first.line} has it already`;
        this.#problems.add(member, [...keys, member.name], what);
      }
    }
    return [...members.values()];
  }

  #member({ key, value }: Pair<ParsedNode, ParsedNode | null>, keys: Keys): SourceMember | null {
    const position = this.positionOf(key.range[0]);
    // The option `null` need not stand in quotes.
    const scalar = isScalar(key) ? key : null;
    const name = scalar?.source === 'null' ? 'null' : scalar?.value;
    if (key.tag !== undefined || typeof name !== 'string') {
      this.#refuse(position, keys, 'has a name here that is no text; put it in quotes');
      return null;
    }
    if (!isStorable(name)) {
      this.#refuse(position, keys, notStorable);
      return null;
    }
    const node: SourceNode =
      value === null ? { kind: 'scalar', ...position, value: null } : this.build(value, [...keys, name]);
    return { ...position, name, value: node };
  }

  #scalar(value: unknown, source: string, position: Position, keys: Keys): SourceNode {
    if (typeof value === 'string') {
      if (!isStorable(value)) return this.#refuse(position, keys, notStorable);
    } else if (typeof value === 'number') {
      const problem = numberProblem(value, source);
      if (problem !== null) return this.#refuse(position, keys, problem);
    } else if (typeof value !== 'boolean' && value !== null) {
      return this.#refuse(position, keys, 'is nothing that JSON has');
    }
    return { kind: 'scalar', ...position, value };
  }

  #refuse(position: Position, keys: Keys, what: string): SourceNode {
    this.#problems.add(position, keys, what);
    return { kind: 'refused', ...position };
  }
}

const notStorable = 'holds U+0000 or half a surrogate pair, which is no text';

/** Tells whether Postgres can hold the text. */
function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

const jsonNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** `007` would become 7, and 12345678901234567890 another number, without a word. */
function numberProblem(value: number, source: string): string | null {
  if (!jsonNumber.test(source))
    return `is ${source}, which is no number to JSON; put it in quotes if it is text`;
  if (!Number.isFinite(value)) return 'is beyond ±1.8e308';
  const isKept = !/^-?\d+$/.test(source) || Number.isSafeInteger(value) || String(value) === source;
  return isKept ? null : 'has more digits than are kept of a number; put it in quotes';
}

/** Returns the value as JSON would parse to it; what was refused is null. */
export function toJson(node: SourceNode): unknown {
  switch (node.kind) {
    case 'object':
      return Object.fromEntries(node.members.map(({ name, value }) => [name, toJson(value)]));
    case 'list':
      return node.items.map(toJson);
    case 'scalar':
      return node.value;
    case 'refused':
      return null;
  }
}

/** Tells whether anything in it was refused: then the value of `toJson` says nothing. */
export function holdsRefused(node: SourceNode): boolean {
  if (node.kind === 'object') return node.members.some(({ value }) => holdsRefused(value));
  if (node.kind === 'list') return node.items.some(holdsRefused);
  return node.kind === 'refused';
}

/** Returns the node that keys and indexes lead to, or undefined. */
export function nodeAt(node: SourceNode, keys: Keys): SourceNode | undefined {
  let at: SourceNode | undefined = node;
  for (const key of keys) {
    if (at?.kind === 'object') at = at.members.find(({ name }) => name === key)?.value;
    else at = at?.kind === 'list' ? at.items[Number(key)] : undefined;
  }
  return at;
}
