import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { named } from './answer-headers.ts';
import { errorAnswers } from './error-answers.ts';

const link = (description: string) => Type.String({ description });

export const showServiceSchema = {
  operationId: 'showService',
  summary: 'Say what this is',
  description: 'By `Accept`: a page for people (`text/html`), or JSON.',
  tags: ['documentation'],
  response: {
    200: {
      description: 'What answers here, and where to go on.',
      headers: named('Vary'),
      content: {
        'application/json': {
          schema: Type.Object(
            {
              service: Type.Literal('sluice'),
              version: Type.String(),
              links: Type.Object(
                {
                  health: link('Whether it is ready.'),
                  docs: link('The interface, as a page.'),
                  openapi: link('The interface, for programs.'),
                  console: Type.Optional(link('The queue; where ADMIN_KEY is set.')),
                },
                { additionalProperties: false },
              ),
            },
            { additionalProperties: false },
          ),
        },
        'text/html': { schema: Type.String({ description: 'The same, as a page.' }) },
      },
    },
    ...errorAnswers('internal_error', 'unavailable'),
  },
} satisfies FastifySchema;
