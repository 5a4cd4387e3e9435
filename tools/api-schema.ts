/** Describes the schemas of the OpenAPI document as types and rows of tables. */
import { code, linked } from './markdown.ts';

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly description?: string;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
}

const maxValues = 20;

/** The type of a record is a link to its page. */
export class Types {
  readonly #tag: string;
  readonly #places: ReadonlyMap<string, string>;

  constructor(tag: string, places: ReadonlyMap<string, string>) {
    this.#tag = tag;
    this.#places = places;
  }

  of(schema: Schema): string {
    if (schema.$ref !== undefined) return this.#link(nameOf(schema.$ref));
    if (schema.anyOf !== undefined)
      return [...new Set(schema.anyOf.map((each) => this.of(each)))].join(' or ');
    if (schema.allOf !== undefined) return this.of(schema.allOf[0] ?? {});
    if (schema.enum !== undefined) return this.#values(schema.enum);
    if (schema.const !== undefined) return code(schema.const);
    const names = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? ['any']);
    return names.map((name) => this.#simple(name, schema)).join(' or ');
  }

  /** Lists with more than `maxValues` values contain error codes, which have their own page. */
  #values(values: readonly unknown[]): string {
    return values.length > maxValues ? `[code](../errors.md)` : values.map((value) => code(value)).join(', ');
  }

  #simple(name: string, { items, format, minimum, maximum, additionalProperties }: Schema): string {
    if (name === 'array' && items !== undefined) return `array of ${this.of(items)}`;
    if (name === 'object' && typeof additionalProperties === 'object')
      return `object of ${this.of(additionalProperties)}`;
    if (name === 'string' && format !== undefined) return format === 'date-time' ? 'time' : format;
    const isNumber = name === 'integer' || name === 'number';
    if (isNumber && maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER)
      return `${name}, ${minimum ?? 0} to ${maximum}`;
    return name;
  }

  #link(name: string): string {
    const place = this.#places.get(name);
    const page = place === undefined || place === this.#tag ? '' : `${place}.md`;
    return place === undefined ? name : `[${name}](${page}#${name.toLowerCase()})`;
  }
}

export type Row = [name: string, ...cells: string[]];

/** The fields of an inner object follow as `outer.inner`. Only requests mark required fields. */
export function rowsOf(schema: Schema, types: Types, prefix = '', isRequest = false): Row[] {
  const { properties = {}, required = [] } = schema.allOf?.[0] ?? schema;
  return Object.entries(properties).flatMap(([name, field]) => {
    const type = `${types.of(field)}${isRequest && required.includes(name) ? ', required' : ''}`;
    const path = `${prefix}${name}`;
    const row: Row = [`\`${path}\``, type, meaning(field)];
    const inner = field.items ?? field;
    const innerPrefix = field.items === undefined ? `${path}.` : `${path}[].`;
    return [row, ...rowsOf(inner, types, innerPrefix, isRequest)];
  });
}

export function meaning({ description = '', default: fallback }: Schema): string {
  const text = linked(description, '..');
  if (fallback === undefined || /default/i.test(text)) return text;
  return `${text} Default: ${code(fallback)}.`.trim();
}

export function firstValue({ examples = [], enum: values = [] }: Schema = {}): unknown {
  return [...examples, ...values][0];
}

export function referencesIn(value: unknown): string[] {
  const references = JSON.stringify(value).matchAll(/"#\/components\/schemas\/(\w+)"/g);
  return Array.from(references, ([, name = '']) => name);
}

export function nameOf(reference: string): string {
  return reference.split('/').at(-1) ?? '';
}
