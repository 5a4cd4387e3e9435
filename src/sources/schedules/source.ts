import { keepableText } from '../../domain/errors.ts';
import type { ReceiveHints } from '../../load/receive/receive.ts';

export interface Source {
  /** Lists the items to load now, in order; those already done may be left out. @throws SourceFailure */
  list(isDone: IsDone, signal: AbortSignal): Promise<readonly SourceItem[]>;
  close?(): void;
}

/** True if that version of an item was taken, by this run or before. */
export type IsDone = (key: string, version: string | null) => boolean;

export interface SourceItem {
  /** Tells it from the other items; holds no secret. */
  readonly key: string;
  readonly filename: string;
  /** Another one means other content; null: not known before it is opened. */
  readonly version: string | null;
  /** `known`: the version that was loaded last. @throws SourceFailure */
  open(known: string | null, signal: AbortSignal): Promise<OpenItem | 'unchanged'>;
}

export interface OpenItem {
  readonly bytes: AsyncIterable<Uint8Array>;
  /** The version to compare with at the next run, or null. */
  readonly version: string | null;
  readonly hints: Pick<ReceiveHints, 'contentType' | 'contentEncodingGzip' | 'format'>;
  /** Throws if what was read is no whole item. Called when all has been read. */
  check?(): Promise<void>;
  close(): Promise<void>;
}

/** A source cannot be read. `passing`: it may be possible later. The message holds no secret. */
export class SourceFailure extends Error {
  override readonly name = 'SourceFailure';
  readonly code: string;
  readonly passing: boolean;

  constructor(
    code: string,
    message: string,
    options: { readonly passing?: boolean; readonly cause?: unknown } = {},
  ) {
    super(keepableText(message), { cause: options.cause });
    this.code = code;
    this.passing = options.passing === true;
  }
}

/** Yields the bytes of an item; what goes wrong meanwhile is a failure of its source. */
export async function* readItem(
  bytes: AsyncIterable<Uint8Array>,
  toFailure: (error: unknown) => SourceFailure,
): AsyncGenerator<Uint8Array> {
  try {
    yield* bytes;
  } catch (error) {
    throw toFailure(error);
  }
}

export type Variables = Readonly<Record<string, string | undefined>>;

/** Only these can be named, so that a file cannot send DATABASE_URL somewhere. */
const wellFormed = /\$\{env:(SCHEDULE_[A-Z0-9_]{1,100})\}/g;

export function placeholderProblem(value: string): string | null {
  return value.replace(wellFormed, '').includes('${')
    ? 'may hold ${env:NAME} only, with a NAME that begins with SCHEDULE_'
    : null;
}

export function namedVariables(text: string): string[] {
  return [...new Set([...text.matchAll(wellFormed)].flatMap(([, name]) => name ?? []))];
}

/** The text with its `${env:…}` filled in: not to be logged. @throws SourceFailure */
export function fillIn(value: string, variables: Variables): string {
  return value.replace(wellFormed, (_, name: string) => {
    const found = variables[name];
    if (found === undefined || found === '') {
      throw new SourceFailure('missing_variable', `the environment variable ${name} is not set`);
    }
    return found;
  });
}

/** Like `fillIn`, where only the shape counts. */
export function fillInAnything(value: string): string {
  return value.replace(wellFormed, 'x');
}
