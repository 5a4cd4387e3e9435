import { keepableText } from '../domain/errors.ts';

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
