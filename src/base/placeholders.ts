/**
 * Texts in operators' files may contain placeholders `${env:NAME}`, so that no file has a secret.
 * Names must begin with `prefix`, so DATABASE_URL cannot be sent to a server.
 */
export class Placeholders {
  readonly #prefix: string;
  readonly #wellFormed: RegExp;

  constructor(prefix: string) {
    this.#prefix = prefix;
    this.#wellFormed = new RegExp(`\\$\\{env:(${prefix}[A-Z0-9_]{1,100})\\}`, 'g');
  }

  problemOf(text: string): string | null {
    return text.replace(this.#wellFormed, '').includes('${')
      ? `may hold \${env:NAME} only, with a NAME that begins with ${this.#prefix}`
      : null;
  }

  namesIn(text: string): string[] {
    return [...new Set([...text.matchAll(this.#wellFormed)].flatMap(([, name]) => name ?? []))];
  }

  /** True if the whole text is one placeholder. */
  isOne(text: string): boolean {
    return this.namesIn(text).length > 0 && this.fillInAnything(text) === 'x';
  }

  /**
   * True if the host of a URL contains a placeholder. Messages show the host, so it must not
   * contain a secret.
   */
  isInHost(url: string): boolean {
    return /^[^/]*\/\/[^/?#]*\$\{/.test(url);
  }

  /** Returns the names of URL parameters that seem to be secrets but contain no placeholder. */
  cleartextSecretsIn(url: string): string[] {
    return [...url.matchAll(secretParameter)]
      .filter(([, , value = '']) => this.namesIn(value).length === 0)
      .map(([, name = '']) => name);
  }

  /** Replaces the placeholders by their values. The result must not be logged. */
  fillIn(text: string, read: (name: string) => string): string {
    return text.replace(this.#wellFormed, (_, name: string) => read(name));
  }

  /** Replaces each placeholder by `x`, for callers that need only the form of the text. */
  fillInAnything(text: string): string {
    return this.fillIn(text, () => 'x');
  }
}

const secretParameter =
  /[?&]([^=&#]*(?:token|secret|passw|signature|api.?key|credential)[^=&#]*|key|sig)=([^&#]*)/gi;
