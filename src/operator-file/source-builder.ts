import { isAlias, isMap, isScalar, isSeq, type Pair, type ParsedNode, type YAMLMap } from 'yaml';
import type { Problems } from './problems.ts';
import type { Position, SourceMember, SourceNode } from './source.ts';

/** Makes a plain tree of what the library parsed, without what such a file has no use for. */
export class SourceBuilder {
  readonly #positionOf: (offset: number) => Position;
  readonly #problems: Problems;

  constructor(positionOf: (offset: number) => Position, problems: Problems) {
    this.#positionOf = positionOf;
    this.#problems = problems;
  }

  build(node: ParsedNode, path: string): SourceNode {
    const position = this.#positionOf(node.range[0]);
    // An alias may stand for the same value many times over, so that a few lines become gigabytes.
    if (isAlias(node)) return this.#refuse(position, path, 'is an alias (*); write the value out');
    if (node.tag !== undefined) return this.#refuse(position, path, `has a tag (${node.tag}); leave it out`);
    if (isMap(node)) return { kind: 'object', ...position, path, members: this.#members(node, path) };
    if (isSeq(node)) {
      const items = node.items.map((item, index) => this.build(item as ParsedNode, `${path}[${index}]`));
      return { kind: 'list', ...position, path, items };
    }
    if (isScalar(node)) return this.#scalar(node.value, node.source ?? '', position, path);
    return this.#refuse(position, path, 'is nothing that JSON has');
  }

  #members(map: YAMLMap, path: string): SourceMember[] {
    const members = new Map<string, SourceMember>();
    for (const pair of map.items) {
      const member = this.#member(pair as Pair<ParsedNode, ParsedNode | null>, path);
      if (member === null) continue;
      const first = members.get(member.name);
      if (first === undefined) members.set(member.name, member);
      else this.#problems.note(member, member.path, `stands here again; line ${first.line} has it already`);
    }
    return [...members.values()];
  }

  #member({ key, value }: Pair<ParsedNode, ParsedNode | null>, path: string): SourceMember | null {
    const position = this.#positionOf(key.range[0]);
    if (!isScalar(key) || key.tag !== undefined || typeof key.value !== 'string') {
      this.#refuse(position, path, 'has a name here that is no text; put it in quotes');
      return null;
    }
    const name = key.value;
    const own = `${path}${stepOf(name, path === '')}`;
    if (this.#textIsWrong(name, position, path)) return null;
    const node: SourceNode =
      value === null ? { kind: 'scalar', ...position, path: own, value: null } : this.build(value, own);
    return { ...position, path: own, name, value: node };
  }

  #scalar(value: unknown, source: string, position: Position, path: string): SourceNode {
    if (typeof value === 'string') {
      if (this.#textIsWrong(value, position, path)) return { kind: 'refused', ...position, path };
    } else if (typeof value === 'number') {
      const problem = numberProblem(value, source);
      if (problem !== null) return this.#refuse(position, path, problem);
    } else if (typeof value !== 'boolean' && value !== null) {
      return this.#refuse(position, path, 'is nothing that JSON has');
    }
    return { kind: 'scalar', ...position, path, value };
  }

  /** What Postgres cannot hold. */
  #textIsWrong(text: string, position: Position, path: string): boolean {
    if (!text.includes('\0') && text.isWellFormed()) return false;
    this.#problems.note(position, path, 'holds U+0000 or half a surrogate pair, which is no text');
    return true;
  }

  #refuse(position: Position, path: string, what: string): SourceNode {
    this.#problems.note(position, path, what);
    return { kind: 'refused', ...position, path };
  }
}

const jsonNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** `007` would become 7, and 12345678901234567890 another number, without a word. */
function numberProblem(value: number, source: string): string | null {
  if (!jsonNumber.test(source))
    return `is ${source}, which is no number to JSON; put it in quotes if it is text`;
  if (!Number.isFinite(value)) return 'is beyond ±1.8e308';
  const isKept = !/^-?\d+$/.test(source) || Number.isSafeInteger(value) || String(value) === source;
  if (isKept) return null;
  return 'has more digits than are kept of a number; put it in quotes';
}

function stepOf(name: string, isFirst: boolean): string {
  if (/^[\w$-]{1,60}$/.test(name)) return isFirst ? name : `.${name}`;
  return `[${JSON.stringify(name.slice(0, 60))}]`;
}
