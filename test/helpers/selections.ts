const AUDIT = 'audit { createdAt updatedAt deletedAt blockedAt activatedAt suspendedAt }';
const DETAIL =
  'detail { __typename ... on CardDetail { maskedNumber lastFour expirationDate holderName } ... on ClabeDetail { accountNumber clabe holderName } }';
const SIDE = `{ instrumentId alias status type rfc ownerId bankId bank { id } ${DETAIL} instrument { id alias } }`;
const CEP =
  'cep { validationId status rawStatus final url beneficiaryName beneficiaryRfc createdAt processedAt }';

/** What each noun's own answer tells. */
export const OWN: Readonly<Record<string, string>> = {
  accounts: `id accountId bankId ownerId ownerType instrumentId clientBankAdapterId bankAdapter accountNumber clabe
    availableBalance { amount currency } type status ${AUDIT}`,
  customers: `id name rfc legalRepresentative { name rfc phone email } domain alias status validationStatus
    rawValidationStatus ${AUDIT}`,
  instruments: `id bankId ownerId customerId alias type rfc ${DETAIL} ${AUDIT}`,
  webhooks: `id clientId url type rawType status rawStatus authType feedsGateway createdAt updatedAt deletedAt
    deletedBy blockedAt blockedBy`,
};
/** And that of a transaction. */
export const TRANSACTION = `id amount { amount currency } status rawStatus category rawCategory subCategory rawSubCategory
  externalReference trackingId description bankId bank { id } source ${SIDE} destination ${SIDE}
  originalTransactionId originalTransaction { id } ${CEP} jsonReference ${AUDIT}`;
