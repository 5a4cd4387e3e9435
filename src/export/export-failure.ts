/** Why an export fails at once: trying again would not help. */
export class ExportFailure extends Error {
  override readonly name = 'ExportFailure';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}
