import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { Answer, ApiDocument, Operation } from '../../../src/http/api-document.ts';
import { describeApi } from '../../../tools/describe-api.ts';

export interface FoundAnswer {
  readonly answer: Answer;
  readonly place: readonly string[];
}

/** The OpenAPI document, whose schemas check values. */
export class DescribedApi {
  readonly document: ApiDocument;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
  readonly #compiled = new Map<string, ValidateFunction>();

  /** Names of fields and parameters. An error message may begin with one. */
  readonly fields: ReadonlySet<string>;

  constructor(document: ApiDocument) {
    this.document = document;
    this.fields = new Set(namesIn(document));
    addFormats.default(this.#ajv);
    this.#ajv.addSchema(document, 'api');
  }

  /**
   * Returns an answer of an operation, and its place: at the operation, or among shared answers.
   */
  answer(place: readonly string[], operation: Operation, status: string): FoundAnswer | undefined {
    const response = operation.responses[status];
    if (response === undefined) return undefined;
    if (!('$ref' in response)) return { answer: response, place: [...place, 'responses', status] };
    const name = response.$ref.split('/').at(-1) ?? '';
    const answer = this.document.components.responses[name];
    return answer && { answer, place: ['components', 'responses', name] };
  }

  /** Returns the faults of a value by the schema at a place of the document. */
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
 * Describes the API once per process from the code. `npm run check` compares the committed file.
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
