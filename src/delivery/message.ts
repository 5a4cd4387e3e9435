/** A message to one address. */
export interface Message {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  /** The same for every try, so that a mail system may notice one that comes twice. */
  readonly messageId: string;
}
