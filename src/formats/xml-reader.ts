import { TextDecoder } from 'node:util';
import { SaxesParser } from 'saxes';
import { DamagedFile } from '../base/errors.ts';

/*
 * Reads XML as a stream. saxes checks the grammar. This reader bounds nesting and the text that
 * saxes buffers.
 */

/** Maximum length of a tag, text or comment, and maximum depth of nesting. */
const maxXmlItemChars = 1_024 * 1_024;
const maxXmlDepth = 256;
/** Maximum number of namespaces in scope. For every element, all of them are searched. */
const maxNamespaces = 256;

export type XmlAttributes = Readonly<Record<string, string>>;

export type NamespaceOf = (prefix: string) => string;

/**
 * Receives each element in the root's namespace with its local name. Also receives all text except
 * the pronunciation of East Asian text.
 */
export interface XmlHandler {
  open(name: string, attributes: XmlAttributes, namespaceOf: NamespaceOf): void;
  close?(name: string): void;
  text?(text: string): void;
  /** True if output should be taken before more XML is parsed. */
  readonly isFull?: boolean;
}

/**
 * Number of characters per parser call. It bounds the number of elements that are reported before
 * the reader can stop.
 */
const SLICE_CHARS = 4 * 1024;

/**
 * Yields when `handler` is full and after each piece.
 * @throws DamagedFile. Errors from `bytes` and `handler` are also thrown.
 */
export async function* readXml(bytes: AsyncIterable<Buffer>, handler: XmlHandler): AsyncGenerator<void> {
  const reader = new XmlReader(handler);
  for await (const piece of bytes) {
    const text = reader.decode(piece);
    for (let at = 0; at < text.length; at += SLICE_CHARS) {
      reader.write(text.slice(at, at + SLICE_CHARS));
      if (handler.isFull === true) yield;
    }
    yield;
  }
  reader.end();
  yield;
}

class XmlReader {
  // `xmlns: true` would take twice as long.
  readonly #parser = new SaxesParser({ position: false, xmlns: false });
  /** Innermost last. */
  readonly #bindings: Binding[] = [];
  #rootNamespace: string | null = null;
  #decoder: TextDecoder | null = null;
  #depth = 0;
  /** Depth of the skipped element around the current position, or 0. */
  #skippedDepth = 0;
  #itemChars = 0;

  constructor(handler: XmlHandler) {
    const parser = this.#parser;
    parser.on('error', ({ message }) => {
      throw new DamagedFile(message);
    });
    parser.on('doctype', () => {
      throw new DamagedFile('it has a DOCTYPE');
    });
    parser.on('xmldecl', ({ encoding = 'utf-8' }) => {
      if (!/^(utf-?8|utf-?16|us-ascii)$/i.test(encoding))
        throw new DamagedFile(`it is encoded as ${encoding}`);
    });
    parser.on('attribute', ({ name, value }) => {
      if (!/^xmlns(?::|$)/.test(name)) return;
      if (this.#bindings.length === maxNamespaces) throw new DamagedFile('it has too many namespaces');
      this.#bindings.push({ depth: this.#depth + 1, prefix: name.slice('xmlns:'.length), namespace: value });
    });
    parser.on('opentag', ({ name, attributes }) => {
      if (++this.#depth > maxXmlDepth) throw new DamagedFile('its elements are nested too deeply');
      this.#itemChars = 0;
      if (this.#skippedDepth > 0) return;
      const namespace = this.#namespaceOf(name.slice(0, Math.max(0, name.indexOf(':'))));
      this.#rootNamespace ??= namespace;
      const local = localName(name);
      if (namespace !== this.#rootNamespace || local === 'rPh') this.#skippedDepth = this.#depth;
      else handler.open(local, attributes, this.#namespaceOf);
    });
    parser.on('closetag', ({ name }) => {
      if (this.#skippedDepth === 0) handler.close?.(localName(name));
      if (this.#skippedDepth === this.#depth) this.#skippedDepth = 0;
      while (this.#bindings.at(-1)?.depth === this.#depth) this.#bindings.pop();
      this.#depth--;
    });
    const text = (value: string) => {
      this.#itemChars = 0;
      if (this.#skippedDepth === 0) handler.text?.(value);
    };
    parser.on('text', text);
    parser.on('cdata', text);
  }

  /**
   * Returns the namespace of the prefix, or the prefix itself if no namespace is declared for it.
   */
  readonly #namespaceOf: NamespaceOf = (prefix) =>
    this.#bindings.findLast((binding) => binding.prefix === prefix)?.namespace ?? prefix;

  decode(bytes: Buffer): string {
    this.#decoder ??= new TextDecoder(encodingOf(bytes), { fatal: true });
    return decodeWith(this.#decoder, bytes);
  }

  write(text: string): void {
    this.#itemChars += text.length;
    if (this.#itemChars > maxXmlItemChars) throw new DamagedFile('a tag or text is too long');
    this.#parser.write(text);
  }

  end(): void {
    if (this.#decoder !== null) decodeWith(this.#decoder, null);
    this.#parser.close();
  }
}

/** Namespace declared by the element at `depth`. The default namespace has an empty prefix. */
interface Binding {
  readonly depth: number;
  readonly prefix: string;
  readonly namespace: string;
}

function decodeWith(decoder: TextDecoder, bytes: Buffer | null): string {
  try {
    return bytes === null ? decoder.decode() : decoder.decode(bytes, { stream: true });
  } catch {
    throw new DamagedFile(`it is not ${decoder.encoding.toUpperCase()}`);
  }
}

/** XML in UTF-16 has a byte order mark. XML without a byte order mark is UTF-8. */
function encodingOf([a, b]: Buffer): string {
  if (a === 0xff && b === 0xfe) return 'utf-16le';
  return a === 0xfe && b === 0xff ? 'utf-16be' : 'utf-8';
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}
