import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { stringify } from 'yaml';
import { namesTag } from './entity-tag.ts';

/** Stands in the text where the address of the server belongs, which depends on how it was asked for. */
const addressMark = 'sluice-server-address';

const formats = {
  json: { type: 'application/json; charset=utf-8', render: JSON.stringify, mark: `"${addressMark}"` },
  yaml: {
    type: 'application/yaml; charset=utf-8',
    render: (value: unknown) => stringify(value),
    mark: addressMark,
  },
} as const;

interface Rendered {
  readonly before: string;
  readonly after: string;
  /** Of both. */
  readonly digest: string;
}

/** The OpenAPI document of an app as text. Made once: anybody may ask for it, and YAML takes as long as a hundred records. */
export class DocumentText {
  readonly #app: FastifyInstance;
  readonly #rendered = new Map<keyof typeof formats, Rendered>();

  /** The app must be ready when it is first sent. */
  constructor(app: FastifyInstance) {
    this.#app = app;
  }

  /** Answers with the document, or with 304 to a caller who has it. */
  send(
    request: FastifyRequest,
    reply: FastifyReply,
    format: keyof typeof formats,
    address: string,
  ): FastifyReply {
    const { before, after, digest } = this.#render(format);
    const hash = createHash('sha256').update(`${digest} ${address}`).digest('hex');
    const etag = `"${hash}"`;
    reply.header('etag', etag).header('cache-control', 'no-cache');
    if (namesTag(request.headers['if-none-match'], etag)) return reply.code(304).send();
    // A text in JSON is one in YAML too.
    return reply.type(formats[format].type).send(`${before}${JSON.stringify(address)}${after}`);
  }

  #render(format: keyof typeof formats): Rendered {
    const known = this.#rendered.get(format);
    if (known !== undefined) return known;
    const { render, mark } = formats[format];
    const text = render({ ...this.#app.swagger(), servers: [{ url: addressMark }] });
    const [before = '', after = ''] = text.split(mark);
    const digest = createHash('sha256').update(text).digest('hex');
    const rendered = { before, after, digest };
    this.#rendered.set(format, rendered);
    return rendered;
  }
}
