import { describe, expect, it } from 'vitest';
import {
  ConflictError,
  NotFoundError,
  PreconditionError,
  RefusedError,
  ValidationError,
} from '../../src/resolvers/errors.ts';
import { REFUND_RULES, TRANSFER_RULES } from '../../src/resolvers/payments/service-refusals.ts';
import { type RefusalRules, refusalError } from '../../src/resolvers/service-refusal.ts';

/** The error body of docs/upstream-api.md, "Errors". */
const body = (status: number, reason: string, detail: string) => ({
  code: 9,
  message: 'API Error',
  details: [
    {
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      reason,
      domain: 'CORE',
      metadata: {
        error_detail: detail,
        http_code: String(status),
        module: 'Transactions',
        method_name: 'InternalTransaction',
        error_code: '10-E4120',
      },
    },
  ],
});

function refused(status: number, answer: unknown, rules: RefusalRules = TRANSFER_RULES) {
  const text = typeof answer === 'string' ? answer : JSON.stringify(answer);
  return refusalError({ status, body: answer, text }, rules);
}

describe('a refusal', () => {
  it.each([
    [
      'FAILED_PRECONDITION',
      'The account is not currently active.',
      PreconditionError,
      'ACCOUNT_NOT_ACTIVE',
      null,
    ],
    [
      'FAILED_PRECONDITION',
      'The account does not have sufficient funds.',
      PreconditionError,
      'INSUFFICIENT_FUNDS',
      null,
    ],
    [
      'DATA_ERROR',
      'External reference should be numeric and have a maximum length of 7 digits.',
      ValidationError,
      'EXTERNAL_REFERENCE_INVALID',
      ['input', 'externalReference'],
    ],
    [
      'DATA_ERROR',
      'Transaction Amount must be higher than 0.',
      ValidationError,
      'AMOUNT_NOT_POSITIVE',
      ['input', 'amount'],
    ],
    [
      'DATA_ERROR',
      'Transaction description must have less than 40 characters length.',
      ValidationError,
      'DESCRIPTION_INVALID',
      ['input', 'description'],
    ],
    [
      'DATA_ERROR',
      'Transaction currency unsupported.',
      ValidationError,
      'CURRENCY_UNSUPPORTED',
      ['input', 'currency'],
    ],
    ['FAILED_PRECONDITION', 'Something else is the matter.', PreconditionError, 'PRECONDITION_FAILED', null],
    ['DATA_ERROR', 'Something else is wrong.', ValidationError, 'INVALID_INPUT', null],
  ])('%s "%s" is known for what it is', (reason, detail, type, code, field) => {
    const error = refused(400, body(400, reason, detail));
    expect(error).toBeInstanceOf(type);
    expect(error).toMatchObject({ code, field, message: detail });
  });

  it('of a refund for a state that is not documented is REFUND_NOT_ALLOWED', () => {
    const answer = body(400, 'FAILED_PRECONDITION', 'The transaction has already been refunded.');
    expect(refused(400, answer, REFUND_RULES)).toMatchObject({ code: 'REFUND_NOT_ALLOWED' });
    const funds = body(400, 'FAILED_PRECONDITION', 'The account does not have sufficient funds.');
    expect(refused(400, funds, REFUND_RULES)).toMatchObject({ code: 'INSUFFICIENT_FUNDS' });
  });

  it('carries the words of the upstream, and each of its details whole', () => {
    const answer = body(400, 'DATA_ERROR', 'Transaction currency unsupported.');
    expect(refused(400, answer).upstream).toEqual({
      code: 9,
      details: answer.details,
      httpStatus: 400,
      message: 'API Error',
      reason: 'DATA_ERROR',
      errorCode: '10-E4120',
      detail: 'Transaction currency unsupported.',
      module: 'Transactions',
      methodName: 'InternalTransaction',
    });
  });

  it.each<[where: string, before: readonly unknown[]]>([
    ['first', []],
    ['second', [{ '@type': 'type.googleapis.com/google.rpc.RequestInfo', request_id: 'x' }]],
    ['behind one of an undocumented reason', [{ reason: 'LIMITS', metadata: { error_detail: 'Something' } }]],
    ['behind what is no object', [null, 'text', 7, []]],
    ['behind an empty one', [{}]],
  ])('is known by the explanation that is documented, where that comes %s', (_where, before) => {
    const { details, ...rest } = body(
      400,
      'FAILED_PRECONDITION',
      'The account does not have sufficient funds.',
    );
    const error = refused(400, { ...rest, details: [...before, ...details] });
    expect(error).toMatchObject({
      code: 'INSUFFICIENT_FUNDS',
      upstream: { reason: 'FAILED_PRECONDITION', errorCode: '10-E4120', details: expect.any(Array) },
    });
    expect(error.upstream?.details.at(-1)).toEqual(details[0]);
  });

  it.each([1.5, '9', 2 ** 31, null, {}])('shows no code where that is %j', (code) => {
    expect(refused(400, { code, message: 'API Error' }).upstream).toMatchObject({ code: null, details: [] });
  });

  it.each([
    ['JSON', { error: 'destination_not_found' }],
    ['text', 'destination_not_found'],
    ['HTML', '<html><body><h1>404</h1><p>destination_not_found</p></body></html>'],
  ])('of 404 is DESTINATION_NOT_FOUND where its identifier came as %s', (_kind, answer) => {
    const error = refused(404, answer);
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toMatchObject({
      code: 'DESTINATION_NOT_FOUND',
      field: ['input', 'destinationInstrumentId'],
    });
  });

  it('of 404 without the identifier is NOT_FOUND', () => {
    expect(refused(404, 'Not Found')).toMatchObject({ code: 'NOT_FOUND' });
  });

  it.each([
    ['JSON', { code: 'external_transfer_not_allowed' }],
    ['HTML', '<p>external_transfer_not_allowed</p>'],
  ])('of 409 is EXTERNAL_TRANSFER_NOT_ALLOWED where its identifier came as %s', (_kind, answer) => {
    const error = refused(409, answer);
    expect(error).toBeInstanceOf(ConflictError);
    expect(error).toMatchObject({ code: 'EXTERNAL_TRANSFER_NOT_ALLOWED' });
  });

  it('of another 409 is a conflict whose reason is not documented', () => {
    const error = refused(409, 'Conflict');
    expect(error).toBeInstanceOf(ConflictError);
    expect(error.code).toBe('REFUSED');
  });

  it.each([
    [400, 'Bad Request'],
    [422, { errors: ['url'] }],
    [418, ''],
  ])('of %i in another form is a RefusedError', (status, answer) => {
    const error = refused(status, answer);
    expect(error).toBeInstanceOf(RefusedError);
    expect(error).toMatchObject({ code: 'REFUSED', upstream: { httpStatus: status } });
  });

  it('that the gateway has made itself has no words of the service', () => {
    const answer = {
      status: 404,
      body: body(404, 'destination_not_found', 'x'),
      text: 'destination_not_found',
    };
    for (const rules of [TRANSFER_RULES, { members: [RefusedError] }]) {
      expect(refusalError(answer, rules).upstream).toMatchObject({ httpStatus: 404 });
      const made = refusalError({ ...answer, synthesized: true }, rules);
      expect(made).toMatchObject({ code: 'DESTINATION_NOT_FOUND', upstream: null });
    }
  });

  it('whose kind the union does not have keeps its code as a RefusedError', () => {
    const error = refused(404, 'destination_not_found', { members: [RefusedError] });
    expect(error).toBeInstanceOf(RefusedError);
    expect(error.code).toBe('DESTINATION_NOT_FOUND');
  });
});
