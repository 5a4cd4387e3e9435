/**
 * Parses YAML or JSON written by a person, with the line and column of each value. File size,
 * nesting and list lengths are limited. Values that JSON cannot express (aliases, tags, some
 * numbers) are refused with their position.
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
import { MAX_OPERATOR_FILE_BYTES, MAX_OPERATOR_FILE_ITEMS } from '../limits.ts';
import { type Keys, pathText } from './schema.ts';

const MAX_OPERATOR_FILE_DEPTH = 64;
export const MAX_OPERATOR_FILE_PROBLEMS = 100;

export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface FileProblem extends Position {
  /** Path of the faulty value. Empty if the problem concerns the whole file. */
  readonly path: string;
  /** Message that begins with the path and states the problem and its cure. */
  readonly message: string;
}

export class FileProblems {
  readonly #first: FileProblem[] = [];
  #count = 0;

  /**
   * Problems in the order of the file. If there are more than MAX_OPERATOR_FILE_PROBLEMS, the
   * problems that were added last are missing.
   */
  get sorted(): readonly FileProblem[] {
    return this.#first.toSorted((a, b) => a.line - b.line || a.column - b.column);
  }

  get count(): number {
    return this.#count;
  }

  add({ line, column }: Position, keys: Keys, what: string): void {
    this.#count++;
    if (this.#first.length >= MAX_OPERATOR_FILE_PROBLEMS) return;
    const path = pathText('', keys);
    this.#first.push({ line, column, path, message: `${path === '' ? 'the file' : path} ${what}` });
  }
}

/**
 * Options for YAML 1.2 with JSON's types, in which `yes` and `on` remain text. `#toObject` finds
 * repeated names.
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
 * Parses a file. If it is neither YAML 1.2 nor JSON, adds the reason to `problems` and returns
 * `null`.
 */
export function parseSource(bytes: Uint8Array, emptyHint: string, problems: FileProblems): Source | null {
  const text = decode(bytes, problems);
  if (text === null) return null;
  const lines = new LineCounter();
  const tokens = [...new Parser(lines.addNewLine).parse(text)];
  // This check must come before the library's recursive functions, because some of those functions
  // fail badly on a stack overflow.
  const tooDeep = findTooDeep(tokens);
  if (tooDeep !== null) {
    const what = `is nested too deep here: at most ${MAX_OPERATOR_FILE_DEPTH} levels`;
    problems.add(positionOf(lines, tooDeep), [], what);
    return null;
  }
  const [document, second] = new Composer(options).compose(tokens, true, text.length);
  if (document === undefined || reportErrors(document, lines, problems)) return null;
  if (second !== undefined) {
    const what = 'holds a second document here; put everything into one';
    problems.add(positionOf(lines, second.range[0]), [], what);
    return null;
  }
  if (document.contents === null) {
    problems.add(start, [], `is empty; ${emptyHint}`);
    return null;
  }
  return new Source(document.contents as ParsedNode, lines, problems);
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

/**
 * Returns the offset of a token that is nested too deep, or `null`. The search is not recursive,
 * because the nesting has not been limited yet.
 */
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

function positionOf(lines: LineCounter, offset: number): Position {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(line, 1), column: Math.max(col, 1) };
}

/**
 * Reports only the first error of each line, because later errors of the line are mostly its
 * consequences.
 */
function reportErrors({ errors }: Document.Parsed, lines: LineCounter, problems: FileProblems): boolean {
  const reported = new Set<number>();
  for (const { message, pos } of errors) {
    const position = positionOf(lines, pos[0]);
    if (!reported.has(position.line)) problems.add(position, [], `is no YAML and no JSON here: ${message}`);
    reported.add(position.line);
  }
  return errors.length > 0;
}

export class Source {
  readonly value: unknown;
  readonly #root: ParsedNode;
  readonly #lines: LineCounter;
  readonly #problems: FileProblems;
  readonly #refusedPaths = new Set<string>();
  readonly #containingPaths = new Set<string>();

  constructor(root: ParsedNode, lines: LineCounter, problems: FileProblems) {
    this.#root = root;
    this.#lines = lines;
    this.#problems = problems;
    this.value = this.#toJson(root, []);
  }

  find(keys: Keys): { readonly position: Position; readonly name: Position } | undefined {
    let node: ParsedNode | null | undefined = this.#root;
    let name: Position | undefined;
    for (const key of keys) {
      name = undefined;
      if (isMap<ParsedNode, ParsedNode | null>(node)) {
        const pair = pairOf(node, key);
        if (pair === undefined) return undefined;
        name = this.#positionOf(pair.key);
        node = pair.value;
      } else {
        node = isSeq(node) ? (node.items[Number(key)] as ParsedNode | undefined) : undefined;
        if (node === undefined) return undefined;
      }
    }
    const position = node ? this.#positionOf(node) : (name ?? start);
    return { position, name: name ?? position };
  }

  isRefused(keys: Keys): boolean {
    return this.#refusedPaths.has(JSON.stringify(keys.map(String)));
  }

  /** True if part of the value was refused. Then no part of the value may be used. */
  containsRefused(keys: Keys): boolean {
    return this.#containingPaths.has(JSON.stringify(keys.map(String)));
  }

  #positionOf(node: ParsedNode): Position {
    return positionOf(this.#lines, node.range[0]);
  }

  #toJson(node: ParsedNode | null, keys: Keys): unknown {
    if (node === null) return null;
    // Nested aliases can expand a few lines to gigabytes.
    if (isAlias(node)) return this.#refuse(node, keys, 'is an alias (*); write the value out');
    if (node.tag !== undefined) return this.#refuse(node, keys, `has a tag (${node.tag}); leave it out`);
    if (isMap<ParsedNode, ParsedNode | null>(node)) return this.#toObject(node, keys);
    if (isSeq(node)) {
      if (node.items.length > MAX_OPERATOR_FILE_ITEMS) {
        const what = `has ${node.items.length} items; at most ${MAX_OPERATOR_FILE_ITEMS} are allowed`;
        return this.#refuse(node, keys, what);
      }
      return node.items.map((item, index) => this.#toJson(item as ParsedNode, [...keys, index]));
    }
    const problem = scalarProblem(node.value, node.source ?? '');
    return problem === null ? node.value : this.#refuse(node, keys, problem);
  }

  #toObject(map: YAMLMap<ParsedNode, ParsedNode | null>, keys: Keys): object {
    const members = new Map<string, unknown>();
    const lines = new Map<string, number>();
    for (const { key, value } of map.items) {
      const name = nameOf(key);
      const position = this.#positionOf(key);
      const first = lines.get(name ?? '');
      if (name === null) {
        this.#problems.add(position, keys, 'has a name here that is no text; put it in quotes');
      } else if (!isStorable(name)) this.#problems.add(position, keys, notStorable);
      else if (first !== undefined) {
        this.#toJson(value, [...keys, name]);
        this.#problems.add(position, [...keys, name], `stands here again; line ${first} has it already`);
      } else {
        lines.set(name, position.line);
        members.set(name, this.#toJson(value, [...keys, name]));
      }
    }
    return Object.fromEntries(members);
  }

  #refuse(node: ParsedNode, keys: Keys, what: string): null {
    this.#problems.add(this.#positionOf(node), keys, what);
    const path = keys.map(String);
    this.#refusedPaths.add(JSON.stringify(path));
    for (let end = 0; end <= path.length; end++)
      this.#containingPaths.add(JSON.stringify(path.slice(0, end)));
    return null;
  }
}

function pairOf(
  { items }: YAMLMap<ParsedNode, ParsedNode | null>,
  name: string | number,
): Pair<ParsedNode, ParsedNode | null> | undefined {
  return items.find(({ key }) => nameOf(key) === name);
}

/**
 * Returns the name of a member, or `null` if it is not text. An unquoted `null`, which YAML reads
 * as a value, is text here.
 */
function nameOf(key: ParsedNode): string | null {
  if (!isScalar(key) || key.tag !== undefined) return null;
  const name = key.source === 'null' ? 'null' : key.value;
  return typeof name === 'string' ? name : null;
}

const notStorable = 'holds U+0000 or half a surrogate pair, which is no text';

function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

const jsonNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Without this check, `007` would silently become 7, and 12345678901234567890 another number. */
function scalarProblem(value: unknown, source: string): string | null {
  if (typeof value === 'string') return isStorable(value) ? null : notStorable;
  if (typeof value !== 'number') {
    return typeof value === 'boolean' || value === null ? null : 'is nothing that JSON has';
  }
  if (!jsonNumber.test(source))
    return `is ${source}, which is no number to JSON; put it in quotes if it is text`;
  if (!Number.isFinite(value)) return 'is beyond ±1.8e308';
  const isKept = !/^-?\d+$/.test(source) || Number.isSafeInteger(value) || String(value) === source;
  return isKept ? null : 'has more digits than are kept of a number; put it in quotes';
}
