interface Described {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly properties?: Readonly<Record<string, Described>>;
  readonly items?: Described;
  readonly anyOf?: readonly Described[];
  readonly allOf?: readonly Described[];
}

const texts: Readonly<Record<string, string>> = {
  date: '2026-11-20',
  'date-time': '2026-11-20T11:58:59.562Z',
  uri: 'https://sluice.example.com/',
  uuid: '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01',
};

/**
 * Makes a value that a schema describes from the examples of its parts. So an answer needs no example of its own, and a new field is in
 * its example too. Tests hold every example to its schema.
 */
export function exampleOf(schema: Described, schemas: Readonly<Record<string, object>>): unknown {
  const { $ref, examples, anyOf, allOf, properties = {}, items, minimum = 0 } = schema;
  const of = (part: Described) => exampleOf(part, schemas);
  if ($ref !== undefined) return of((schemas[$ref.split('/').at(-1) ?? ''] ?? {}) as Described);
  if (examples !== undefined) return examples[0];
  if ('const' in schema) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  const [first] = anyOf ?? allOf ?? [];
  if (first !== undefined) return of(first);
  switch ([schema.type].flat()[0]) {
    case 'object':
      return Object.fromEntries(Object.entries(properties).map(([name, part]) => [name, of(part)]));
    case 'array':
      return items === undefined || of(items) === '' ? [] : [of(items)];
    case 'integer':
    case 'number':
      return minimum;
    case 'boolean':
      return false;
    case 'string':
      return texts[schema.format ?? ''] ?? '';
    default:
      return null;
  }
}
