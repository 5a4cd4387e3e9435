/**
 * Renders the OpenAPI document as pages: docs/api.md for what all calls have in common, and a page
 * in docs/api with the calls and records of each tag.
 */
import type { Answer, ApiDocument, MediaType, Operation, Reference } from '../src/http/api-document.ts';
import {
  firstValue,
  meaning,
  nameOf,
  type Row,
  referencesIn,
  rowsOf,
  type Schema,
  Types,
} from './api-schema.ts';
import { codeBlock, codeList, layout, linked, spaced, table } from './markdown.ts';

/**
 * A call of the API. Calls with the same summary, such as those with paths for SDKs, share a
 * chapter.
 */
interface Call {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

const refusalsWithKey = ['invalid_api_key', 'insufficient_scope', 'rate_limited', 'headers_too_large'];
const refusalsWithBody = ['upload_too_slow', 'payload_too_large', 'unsupported_media_type'];
const failures = ['internal_error', 'unavailable'];
const commonRefusals = new Set([...refusalsWithKey, ...refusalsWithBody, ...failures]);

export function apiPages(document: ApiDocument): readonly (readonly [name: string, text: string])[] {
  const pages = document.tags.map(({ name }) => new TagPage(document, name));
  const places = new Map<string, string>();
  for (const page of pages) {
    for (const name of page.recordNames()) {
      if (!places.has(name)) places.set(name, page.tag);
    }
  }
  return [
    ['api.md', overviewPage(document, pages)],
    ...pages.map((page) => [`api/${page.tag}.md`, page.render(places)] as const),
  ];
}

class TagPage {
  readonly tag: string;
  readonly chapters: ReadonlyMap<string, readonly Call[]>;
  readonly #document: ApiDocument;

  constructor(document: ApiDocument, tag: string) {
    this.tag = tag;
    this.#document = document;
    this.chapters = chaptersOf(document, tag);
  }

  get description(): string {
    return this.#document.tags.find(({ name }) => name === this.tag)?.description ?? '';
  }

  /** Names of all records that the calls of the page use, also inside other records. */
  recordNames(): string[] {
    const names = new Set<string>();
    const collect = (value: unknown) => {
      for (const name of referencesIn(value)) {
        if (names.has(name) || name === 'ErrorRecord') continue;
        names.add(name);
        collect(this.#document.components.schemas[name]);
      }
    };
    collect([...this.chapters.values()]);
    return [...names].sort();
  }

  render(places: ReadonlyMap<string, string>): string {
    const types = new Types(this.tag, places);
    const shown = new Set<string>();
    const records = this.recordNames().filter((name) => places.get(name) === this.tag);
    const chapters = [...this.chapters].map(([title, calls]) => this.#chapter(title, calls, types, shown));
    const recordChapters = records.map((name) => {
      const schema = this.#document.components.schemas[name] as Schema;
      return `### ${name}\n\n${linked(schema.description ?? '', '..')}\n\n${recordTable(schema, types)}`;
    });
    return `# API: ${this.tag}

Generated from the OpenAPI document by \`npm run generate:docs\`. [HTTP interface](../api.md) has what all calls have in
common: the variables of the commands, keys, pages, refusals.

${linked(this.description, '..')}

${[...this.chapters].map(([title, calls]) => contentsLine(title, calls, '')).join('\n')}

${chapters.join('\n\n')}
${records.length === 0 ? '' : `\n## Records\n\n${recordChapters.join('\n\n')}\n`}`;
  }

  #chapter(title: string, calls: readonly Call[], types: Types, shown: Set<string>): string {
    const [{ operation }] = calls as [Call];
    const parts = [
      `## ${title}`,
      calls.map(({ method, path }) => `\`${method} ${path}\``).join(', '),
      linked(operation.description ?? '', '..'),
      ...parametersOf(operation, types),
      ...bodiesOf(operation, types),
      codeBlock('sh', curlOf(calls[0] as Call)),
      ...answersOf(operation, types, shown),
      refusalsOf(operation, this.#document),
    ];
    return parts.filter((part) => part !== '').join('\n\n');
  }
}

function chaptersOf({ paths }: ApiDocument, tag: string): Map<string, Call[]> {
  const calls = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
  const isVersioned = ({ path }: Call) => /^(?:\/api)?\/v1\/[a-z]/.test(path);
  const ofTag = calls.filter(({ operation }) => operation.tags?.includes(tag));
  const sorted = [...ofTag.filter(isVersioned), ...ofTag.filter((call) => !isVersioned(call))];
  return groupBy(sorted, ({ operation }) => operation.summary ?? '');
}

function overviewPage(document: ApiDocument, pages: readonly TagPage[]): string {
  const { info, components } = document;
  const { apiKey } = components.securitySchemes as { readonly apiKey: { readonly description: string } };
  const nouns = pages.map(({ tag, description, chapters }) => {
    const lines = [...chapters].map(([title, calls]) => contentsLine(title, calls, `api/${tag}.md`));
    const [summary = ''] = description.split('\n\n');
    return `### [${tag[0]?.toUpperCase()}${tag.slice(1)}](api/${tag}.md)\n\n${linked(summary, '.')}\n\n${lines.join('\n')}`;
  });
  const error = {
    error: 'Bad Request',
    error_code: 'missing_field',
    message: 'user_id is missing',
    details: 'user_id',
  };
  return `# HTTP interface

Generated from the OpenAPI document by \`npm run generate:docs\`. A server has the same document at \`/openapi.json\`, and
shows it as a page at \`/docs\`.

${linked(info.description, '.')}

## Commands

The commands use these variables:

\`\`\`sh
H="Authorization: Token slk_…"; J="Content-Type: application/json"; B=http://127.0.0.1:8080
\`\`\`

## Keys and scopes

${linked(apiKey.description, '.')}

## Refusals

${codeBlock('json', spaced({ errors: [error] }))}

[Errors](errors.md) has the meaning and the cure of each code. A call lists its own refusals. These are common:

- a call that needs a key: ${codeList(refusalsWithKey)}
- a call with a body: ${codeList(refusalsWithBody)}
- any call: ${codeList(failures)}

## Clients

[examples/clients](../examples/clients/README.md) has clients for curl, Node and Python. Generate others from
\`/openapi.json\`.

## Endpoints

${nouns.join('\n\n')}
`;
}

function contentsLine(title: string, calls: readonly Call[], page: string): string {
  const anchor = title
    .toLowerCase()
    .replace(/[^\w -]/g, '')
    .replaceAll(' ', '-');
  return `- [${title}](${page}#${anchor}): ${calls.map(({ method, path }) => `\`${method} ${path}\``).join(', ')}`;
}

function parametersOf({ parameters = [] }: Operation, types: Types): string[] {
  if (parameters.length === 0) return [];
  const order = ['path', 'query', 'header'];
  const sorted = parameters.toSorted((a, b) => order.indexOf(a.in) - order.indexOf(b.in));
  const rows = sorted.map((parameter) => {
    const { name, in: place, schema, description, required } = parameter;
    const type = `${types.of(schema as Schema)}${required === true && place !== 'path' ? ', required' : ''}`;
    return [`\`${name}\``, place, type, meaning({ ...(schema as Schema), description: description ?? '' })];
  });
  return [table(['parameter', 'in', 'type', 'meaning'], rows)];
}

function bodiesOf({ requestBody, parameters = [] }: Operation, types: Types): string[] {
  if (requestBody === undefined) return [];
  const options = new Set(parameters.filter(({ in: place }) => place === 'query').map(({ name }) => name));
  const bySchema = groupBy(Object.entries(requestBody.content), ([, { schema }]) => JSON.stringify(schema));
  return [...bySchema.values()].flatMap((contents) => {
    const media = contents.map(([type]) => `\`${type}\``).join(', ');
    const [[, { schema }]] = contents as [[string, { schema: Schema }]];
    const rows = rowsOf(schema, types, '', true);
    const others = rows.filter(([name]) => !options.has(name.replaceAll('`', '')));
    const isRepeated = others.length < rows.length - 3;
    const hint = isRepeated ? '. The query parameters are fields too' : '';
    const text = schema.$ref === undefined && rows.length > 0 ? '' : `: ${types.of(schema)}`;
    const note = [`Body ${media}${text}${hint}.`, linked(schema.description ?? '', '..')]
      .filter(Boolean)
      .join(' ');
    const shown = isRepeated ? others : rows;
    return shown.length === 0 ? [note] : [note, table(['field', 'type', 'meaning'], shown)];
  });
}

/** Empty or repeated examples are left out. */
function exampleOnce(json: MediaType, shown: Set<string>): string[] {
  const text = layout(exampleValue(json));
  if (text === '{}' || shown.has(text)) return [];
  shown.add(text);
  return [codeBlock('json', text)];
}

function answersOf({ responses }: Operation, types: Types, shown: Set<string>): string[] {
  return Object.entries(responses).flatMap(([status, response]) => {
    if (Number(status) >= 400 || '$ref' in response) return [];
    const { description, content = {} } = response as Answer;
    const kinds = Object.entries(content).map(([type, { schema }]) =>
      type === 'application/json' ? types.of(schema as Schema) : `\`${type}\``,
    );
    const line = `**${status}** ${kinds.length === 0 ? '' : `${kinds.join(', ')}: `}${linked(description, '..')}`;
    const json = content['application/json'];
    const rows = json === undefined ? [] : inlineRows(json.schema as Schema, types);
    return [
      line,
      ...(rows.length === 0 ? [] : [table(['field', 'type', 'meaning'], rows)]),
      ...(json === undefined ? [] : exampleOnce(json, shown)),
    ];
  });
}

function refusalsOf({ responses, security = [] }: Operation, document: ApiDocument): string {
  const lines = Object.entries(responses).flatMap(([status, response]) => {
    if (Number(status) < 400) return [];
    const { description } = (
      '$ref' in response ? document.components.responses[nameOf((response as Reference).$ref)] : response
    ) as Answer;
    const codes = [...(/error_code: (.+?)\.?$/.exec(description)?.[1] ?? '').matchAll(/\w+/g)].map(
      ([word]) => word,
    );
    const shown = codes.filter((each) => security.length === 0 || !commonRefusals.has(each));
    if (codes.length === 0) return [`${status} (${description.replace(/\.$/, '')})`];
    return shown.length === 0 ? [] : [`${status} ${codeList(shown)}`];
  });
  return lines.length === 0 ? '' : `Refusals: ${lines.join('; ')}.`;
}

function recordTable(schema: Schema, types: Types): string {
  const rows = rowsOf(schema, types);
  return rows.length === 0 ? types.of(schema) : table(['field', 'type', 'meaning'], rows);
}

/** Returns the rows for a schema that is not a record with a name. */
function inlineRows(schema: Schema, types: Types): Row[] {
  if (schema.$ref !== undefined) return [];
  if (schema.items !== undefined && schema.items.$ref === undefined) return rowsOf(schema.items, types);
  return rowsOf(schema, types);
}

function curlOf({ method, path, operation }: Call): string {
  const { parameters = [], requestBody, security = [] } = operation;
  const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const parameter = parameters.find((each) => each.name === name && each.in === 'path');
    const value = parameter?.example ?? firstValue(parameter?.schema as Schema | undefined);
    return value === undefined ? '…' : encodeURIComponent(String(value));
  });
  const [body, options] = curlBody(requestBody?.content ?? {});
  const isImplied = (method === 'GET' && body === '') || (method === 'POST' && body !== '');
  const words = [
    'curl',
    isImplied ? '' : `-X ${method}`,
    security.length === 0 ? '' : '-H "$H"',
    ...options,
    `$B${url}`,
    body,
  ];
  return words.filter((word) => word !== '').join(' ');
}

function curlBody(content: Readonly<Record<string, MediaType>>): [body: string, options: string[]] {
  const json = content['application/json'];
  if ('multipart/form-data' in content && (json === undefined || exampleValue(json) === undefined))
    return ['-F file=@users.csv', []];
  if (json === undefined) return ['', []];
  const text = JSON.stringify(exampleValue(json) ?? {}).replaceAll("'", "'\\''");
  return [`-d '${text}'`, ['-H "$J"']];
}

function exampleValue({ examples = {} }: MediaType): unknown {
  const values = Object.values(examples).map(({ value }) => value);
  return values.find((value) => JSON.stringify(value) !== '{}') ?? values[0];
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
