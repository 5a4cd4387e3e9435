import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { Answer, ApiDocument, Operation } from '../../../src/http/api-document.ts';
import { describeApi } from '../../../tools/describe-api.ts';

export interface FoundAnswer {
  readonly answer: Answer;
  readonly place: readonly string[];
}

/** The OpenAPI document, and checks of values against its schemas. */
export class DescribedApi {
  readonly document: ApiDocument;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
  readonly #compiled = new Map<string, ValidateFunction>();

  /** Names of fields and parameters. An error message may start with one of them. */
  readonly fields: ReadonlySet<string>;

  constructor(document: ApiDocument) {
    this.document = document;
    this.fields = new Set(namesIn(document));
    addFormats.default(this.#ajv);
    this.#ajv.addSchema(document, 'api');
  }

  /**
   * Returns a response of an operation, and where it is defined: in the operation or among the
   * shared responses.
   */
  answer(place: readonly string[], operation: Operation, status: string): FoundAnswer | undefined {
    const response = operation.responses[status];
    if (response === undefined) return undefined;
    if (!('$ref' in response)) return { answer: response, place: [...place, 'responses', status] };
    const name = response.$ref.split('/').at(-1) ?? '';
    const answer = this.document.components.responses[name];
    return answer && { answer, place: ['components', 'responses', name] };
  }

  /** Returns the problems of a value, validated against the schema at `place`. */
  problems(place: readonly string[], value: unknown): string[] {
    const pointer = `api#/${place.map(escapeToken).join('/')}`;
    const validate = this.#compiled.get(pointer) ?? this.#ajv.compile({ $ref: pointer });
    this.#compiled.set(pointer, validate);
    return validate(value) ? [] : (validate.errors ?? []).map(describe);
  }
}

function* namesIn(part: unknown): Generator<string> {
  if (typeof part !== 'object' || part === null) return;
  const { properties, name } = part as { readonly properties?: object; readonly name?: unknown };
  if (typeof properties === 'object') yield* Object.keys(properties);
  if ('in' in part && typeof name === 'string') yield name;
  for (const value of Object.values(part)) yield* namesIn(value);
}

let described: Promise<DescribedApi> | undefined;

/**
 * Generates the OpenAPI document from the code, once per process. `npm run check` compares the
 * committed document with it.
 */
export function describedApi(): Promise<DescribedApi> {
  described ??= describeApi().then((document) => new DescribedApi(document));
  return described;
}

function escapeToken(token: string): string {
  return encodeURIComponent(token.replaceAll('~', '~0').replaceAll('/', '~1'));
}

function describe({ instancePath, message, params, keyword }: ErrorObject): string {
  const at = instancePath === '' ? 'the body' : instancePath;
  const name = keyword === 'additionalProperties' ? `: ${params['additionalProperty']}` : '';
  const allowed = keyword === 'enum' ? `: ${(params['allowedValues'] as unknown[]).join(', ')}` : '';
  return `${at} ${message}${name}${allowed}`;
}
