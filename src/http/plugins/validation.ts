import type { FastifyInstance } from 'fastify';
import { type Static, type TObject, type TProperties, type TSchema, Type } from 'typebox';
import { InputError, type Problem } from '../../base/errors.ts';
import { findMeant } from '../../base/nearest.ts';
import { compileSchema, hasWording, throwProblems } from '../../base/validation.ts';
import { shorten } from '../../base/wording.ts';

/**
 * Validates paths, queries and headers. Handlers validate bodies, because some are streams. Only
 * tests validate responses.
 */
export function addValidation(app: FastifyInstance): void {
  nameIgnored(app);
  app.setSerializerCompiler(() => JSON.stringify);
  app.setValidatorCompiler<TSchema>(({ schema, httpPart }) => {
    switch (httpPart) {
      case 'querystring':
        return compileQuery(schema as TObject);
      case 'params':
        return compileParameters(schema as TObject);
      case 'headers':
        return compileHeaders(schema as TObject);
      default:
        return () => true;
    }
  });
}

const maxNamed = 10;

function nameIgnored(app: FastifyInstance): void {
  app.addHook('preValidation', async ({ query, routeOptions }, reply) => {
    const schema = routeOptions.schema?.querystring as TObject | undefined;
    if (schema === undefined || (schema as { [textRules]?: TextRules })[textRules]?.lenient !== true) return;
    const ignored = Object.keys(query as object).filter((name) => !Object.hasOwn(schema.properties, name));
    if (ignored.length === 0) return;
    const names = ignored
      .slice(0, maxNamed)
      .map((name) => encodeURIComponent(shorten(name, 100).toWellFormed()));
    reply.header('ignored-parameters', names.join(', '));
  });
}

function validatorOf(schema: TSchema) {
  const findProblems = compileSchema(schema);
  return (value: unknown) => {
    const [first, ...more] = findProblems(value);
    return first === undefined ? true : { error: new InputError(first, ...more) };
  };
}

/** UUIDs are stored in lower case. */
function compileParameters(schema: TObject) {
  const check = validatorOf(schema);
  const isUuid = (name: string) =>
    (schema.properties[name] as { format?: string } | undefined)?.format === 'uuid';
  if (!Object.keys(schema.properties).some(isUuid)) return check;
  return (params: unknown) => {
    const result = check(params);
    if (result !== true) return result;
    const entries = Object.entries(params as Record<string, string>);
    return {
      value: Object.fromEntries(entries.map(([name, id]) => [name, isUuid(name) ? id.toLowerCase() : id])),
    };
  };
}

/**
 * Checks only the headers whose schema has an error message. The code that reads the body checks
 * the other headers.
 */
function compileHeaders({ properties }: TObject) {
  const checked = Object.entries(properties)
    .filter(([, schema]) => hasWording(schema))
    .map(([name, schema]) => [name.toLowerCase(), schema] as const);
  return validatorOf(Type.Object(Object.fromEntries(checked)));
}

export type Texts = Readonly<Record<string, string | readonly string[]>>;

interface TextRules {
  readonly lenient: boolean;
}

const textRules = Symbol('textRules');

/**
 * Query of a request that only reads. Unknown parameters are ignored and listed in
 * `Ignored-Parameters`. A misspelt name is refused, because `staus=failed` must not list
 * everything.
 */
export function lenientQuery<P extends TProperties>(properties: P) {
  return Type.Object(properties, { additionalProperties: true, [textRules]: { lenient: true } });
}

/**
 * Options of a request that changes something. Unknown ones are refused: `dryrun=true` must not
 * start a real load.
 */
export function optionFields<P extends TProperties>(properties: P) {
  return Type.Object(properties, { additionalProperties: false, [textRules]: { lenient: false } });
}

function compileQuery(schema: TObject) {
  const options = (schema as { [textRules]?: TextRules })[textRules];
  if (options === undefined) return validatorOf(schema);
  const read = compileTexts(schema);
  return (query: unknown) => {
    try {
      const value = read(query as Texts);
      // Unless `lenient` is set, the options are parsed later, with the fields of the form.
      return options.lenient ? { value } : true;
    } catch (error) {
      return { error: error as Error };
    }
  };
}

export function compileTexts<T extends TObject>(schema: T): (texts: Texts) => Static<T> {
  const findProblems = compileSchema(schema);
  const { lenient } = (schema as { [textRules]?: TextRules })[textRules] ?? { lenient: false };
  return (texts) => {
    const problems: Problem[] = [];
    const values: Record<string, unknown> = {};
    for (const [name, text] of Object.entries(texts)) {
      if (lenient && !Object.hasOwn(schema.properties, name)) {
        const names = Object.keys(schema.properties);
        const cursor = pagers.has(name) ? names.find((each) => cursors.has(each)) : undefined;
        const meant = findMeant(name, names);
        if (cursor !== undefined) problems.push(notPaged(name, cursor));
        else if (meant !== undefined) problems.push(misspelt(name, meant));
        continue;
      }
      if (lenient && text === '') continue;
      const different = lenient ? [text].flat() : [...new Set([text].flat())];
      const of = schema.properties[name] as { readonly type?: string } | undefined;
      if (different.length > 1 && of?.type !== undefined && of.type !== 'array') {
        const message = `${name} was given more than once${lenient ? '' : ', with different values'}`;
        problems.push({ code: 'invalid_field', message, details: name });
      } else {
        Object.defineProperty(values, name, { value: readText(of?.type, different), enumerable: true });
      }
    }
    throwProblems([...problems, ...findProblems(values)]);
    return values as Static<T>;
  };
}

/**
 * Paging parameters of other services. A client whose parameter is ignored would read the first
 * page forever.
 */
const pagers: ReadonlySet<string> = new Set(['page', 'per_page', 'offset']);
const cursors: ReadonlySet<string> = new Set(['cursor', 'after_cursor']);

function notPaged(name: string, cursor: string): Problem {
  const message = `This list takes no ${name}; send limit, and ${cursor} from the page before`;
  return { code: 'invalid_field', message, details: name };
}

function misspelt(name: string, meant: string): Problem {
  return {
    code: 'invalid_field',
    message: `${name} is not a parameter. Did you mean ${meant}?`,
    details: name,
  };
}

const flags: Readonly<Record<string, boolean>> = {
  true: true,
  '1': true,
  '': true,
  false: false,
  '0': false,
};

/** Text that cannot be converted is returned unchanged. The schema then refuses it. */
function readText(type: string | undefined, texts: readonly string[]): unknown {
  const [text = ''] = texts;
  if (type === 'array') return texts;
  if (type === 'integer') return /^\d{1,9}$/.test(text) ? Number(text) : text;
  return type === 'boolean' ? (flags[text] ?? text) : text;
}
